#include "kernels/cpu/conv/linear_dense.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/feature_panels.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/linear_dense.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Input features of a block, and tokens that share a reading of the weights: both parts of the second cache.
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kChunkTokens = 192;
// Tokens that a thread should have of a panel at least, so that its weights are worth reading.
constexpr int64_t kFewTokens = 24;
// Input features of a run: a line of a token's.
constexpr int64_t kRun = 16;
// Lines of the next block's weights that are asked for in a run at most.
constexpr int64_t kMostLines = 16;

constexpr int kUnitVectors = static_cast<int>(kPositionUnit / kLanes);
constexpr int kMaxUnits = static_cast<int>(kMaxPanelWidth / kPositionUnit);
// Vectors of a tile: its sums, a row of weights and an input fill the registers.
template <int kUnits>
constexpr int kTileVectors = std::min((kUnits * kUnitVectors), HWY_TARGET == HWY_AVX3 ? 4 : 2);
// Tokens of a tile at most: with fewer than ten sums or so, each would wait for itself.
template <int kUnits>
constexpr int kTileTokens = (HWY_TARGET == HWY_AVX3 && kUnits <= 2) ? 12 : 6;

// Some tokens' part of one panel of the output features, over a block of the input features.
struct Block {
  const float* input;  // of the first token, where the block begins
  int64_t input_stride;
  const float* weights;  // rows as wide as the panel
  int64_t columns;
  const float* bias;
  const float* residual;  // of the first token, where the panel begins; null: none
  float* output;          // likewise
  int64_t output_stride;  // and the residual's
  int64_t features;       // of the panel, the spare ones left out
  const Epilogue* epilogue;
  bool first;        // sums start from the bias, not from the output
  bool last;         // the epilogue follows
  const float* ask;  // what the next tile is to ask for, a line a step
  int64_t lines;     // of it in a run

  bool IsWhole() const { return features % kPositionUnit == 0; }
};

// What ends a tile where vectors can't: sums of `tokens` tokens, `width` floats apart.
HWY_NOINLINE void FinishTokens(const Block& block, int64_t token, int64_t tokens, float* sums, int64_t width,
                               int64_t first, int64_t count) {
  const FloatTag d;
  const Epilogue& epilogue = *block.epilogue;
  const FloatVector low = hn::Set(d, epilogue.low), high = hn::Set(d, epilogue.high);
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t at = (token + t) * block.output_stride + first;
    for (int64_t f = 0; f < count; f += kLanes) {
      FloatVector sum = hn::LoadU(d, sums + t * width + f);
      if (block.residual != nullptr) sum = hn::Add(sum, LoadSome(block.residual + at + f, count - f));
      hn::StoreU(Clamp(sum, low, high), d, sums + t * width + f);
    }
  }
  if (epilogue.function) ApplyFunction(*epilogue.function, sums, tokens * width);
  for (int64_t t = 0; t < tokens; ++t) {
    float* const to = block.output + (token + t) * block.output_stride + first;
    for (int64_t f = 0; f < count; f += kLanes) StoreSome(hn::LoadU(d, sums + t * width + f), to + f, count - f);
  }
}

// kTokens tokens by kVectors vectors of a panel of kUnits units.
template <int kUnits, int kVectors, int kTokens>
struct Tile {
  static constexpr int64_t kWidth = kUnits * kPositionUnit;
  FloatVector sums[kTokens][kVectors];

  HWY_INLINE void Begin(const Block& block, int64_t first) {
    const FloatTag d;
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const FloatVector bias = block.first ? hn::Load(d, block.bias + first + j * kLanes) : hn::Zero(d);
      SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) sums[t][j] = bias;
    }
  }

  // `count` input features from `column` on.
  HWY_INLINE void AddColumns(const float* const* tokens, const float* weights, int64_t column, int64_t count) {
    const FloatTag d;
    for (const int64_t end = column + count; column < end; ++column, weights += kWidth) {
      FloatVector row[kVectors];
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) row[j] = hn::Load(d, weights + j * kLanes);
      SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
        const FloatVector input = hn::Set(d, tokens[t][column]);
        SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[t][j] = hn::MulAdd(input, row[j], sums[t][j]);
      }
    }
  }

  HWY_INLINE void End(const Block& block, int64_t token, int64_t first) {
    const FloatTag d;
    if (!block.first) AddFrom(block.output, block, token, first);
    if (block.last && (block.epilogue->function || !block.IsWhole())) {
      HWY_ALIGN float scratch[int64_t{kTokens} * kVectors * kLanes];
      SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
        SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j)
            hn::Store(sums[t][j], d, scratch + (t * kVectors + j) * kLanes);
      }
      constexpr int64_t kFeatures = kVectors * kLanes;
      return FinishTokens(block, token, kTokens, scratch, kFeatures, first,
                          std::min(kFeatures, block.features - first));
    }
    if (block.last) {
      if (block.residual != nullptr) AddFrom(block.residual, block, token, first);
      const FloatVector low = hn::Set(d, block.epilogue->low), high = hn::Set(d, block.epilogue->high);
      SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
        SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[t][j] = Clamp(sums[t][j], low, high);
      }
    }
    SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
      float* const to = block.output + (token + t) * block.output_stride + first;
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) hn::StoreU(sums[t][j], d, to + j * kLanes);
    }
  }

 private:
  HWY_INLINE void AddFrom(const float* rows, const Block& block, int64_t token, int64_t first) {
    SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
      const float* const from = rows + (token + t) * block.output_stride + first;
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
        sums[t][j] = hn::Add(sums[t][j], hn::LoadU(FloatTag(), from + j * kLanes));
      }
    }
  }
};

// kTokens tokens from `token` on, in as few tiles as registers allow.
template <int kUnits, int kTokens>
void RunTokens(const Block& block, int64_t token) {
  constexpr int kVectors = kTileVectors<kUnits>;
  constexpr int64_t kWidth = kUnits * kPositionUnit;
  const float* tokens[kTokens];
  SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) tokens[t] = block.input + (token + t) * block.input_stride;
  const float* ask = block.ask;
  for (int64_t first = 0; first < std::min(kWidth, block.features); first += kVectors * kLanes) {
    Tile<kUnits, kVectors, kTokens> tile;
    tile.Begin(block, first);
    const float* weights = block.weights + first;
    int64_t column = 0;
    for (; column + kRun <= block.columns; column += kRun, weights += kRun * kWidth) {
      if (first == 0) {
        // The tokens after these, and some of the next block.
        SWIZZLE_UNROLL for (int t = 0; t < kTokens; ++t) {
          __builtin_prefetch(tokens[t] + kTokens * block.input_stride + column);
        }
        for (int64_t i = 0; i < block.lines; ++i, ask += kRun) __builtin_prefetch(ask, 0, 2);
      }
      tile.AddColumns(tokens, weights, column, kRun);
    }
    tile.AddColumns(tokens, weights, column, block.columns - column);
    tile.End(block, token, first);
  }
}

using TokensFunction = void (*)(const Block&, int64_t);
template <int kUnits>
constexpr auto kRunTokens = []<size_t... kIndices>(std::index_sequence<kIndices...>) {
  return std::array<TokensFunction, sizeof...(kIndices)>{RunTokens<kUnits, static_cast<int>(kIndices) + 1>...};
}
(std::make_index_sequence<kTileTokens<kUnits>>());

// All of a block's tokens, in tiles of nearly equal heights.
template <int kUnits>
void RunBlock(Block block, int64_t tokens) {
  const int64_t tiles = CeilDiv(tokens, kTileTokens<kUnits>);
  const int64_t runs = std::max<int64_t>(1, block.columns / kRun);
  const int64_t lines = CeilDiv(block.columns * kUnits, tiles);  // for each tile
  block.lines = std::min(CeilDiv(lines, runs), kMostLines);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t token = tokens * i / tiles;
    kRunTokens<kUnits>[tokens * (i + 1) / tiles - token - 1](block, token);
    block.ask += block.lines * runs * kRun;
  }
}

using BlockFunction = void (*)(Block, int64_t);
constexpr BlockFunction kRunBlock[] = {RunBlock<1>, RunBlock<2>, RunBlock<3>, RunBlock<4>};
static_assert(std::size(kRunBlock) == kMaxUnits);

// Tokens [begin, end) of one panel.
void RunPanel(const KernelArgs& args, int64_t panel, int64_t begin, int64_t end) {
  const auto& weight = static_cast<const FeaturePanels&>(*args.weight);
  const PanelGrid& grid = weight.grid();
  const int64_t first = grid.Begin(panel), width = grid.Width(panel), cols = weight.cols();
  const float* const residual = args.Residual<float>();
  const int64_t offset = begin * weight.rows() + first;
  Block block = {};
  block.input_stride = cols;
  block.bias = weight.bias() + first;
  block.residual = residual == nullptr ? nullptr : residual + offset;
  block.output = args.Output<float>() + offset;
  block.output_stride = weight.rows();
  block.features = std::min(width, weight.rows() - first);
  block.epilogue = &args.problem->epilogue;
  // A panel with spare features has nowhere to keep their sums.
  const int64_t blocks = block.IsWhole() ? CeilDiv(cols, kBlockColumns) : 1;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t column = cols * i / blocks;
    block.columns = cols * (i + 1) / blocks - column;
    block.input = args.Input<float>(0) + begin * cols + column;
    block.weights = weight.weights(panel, column);
    block.ask = block.weights + block.columns * width;
    block.first = i == 0;
    block.last = i + 1 == blocks;
    kRunBlock[width / kPositionUnit - 1](block, end - begin);
  }
}

}  // namespace

void LinearDense(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const FeaturePanels&>(*args.weight);
  CpuStream& cpu_stream = CpuStream::From(stream);
  const int64_t tokens = args.problem->input.batch, panels = weight.grid().count();
  // Chunks of the tokens by panels: as few as there may be, but enough for all threads.
  const int64_t wanted = CeilDiv<int64_t>(int64_t{4} * cpu_stream.threads(), panels);
  const int64_t chunks = std::max(CeilDiv(tokens, kChunkTokens), std::min(wanted, tokens / kFewTokens));
  cpu_stream.ParallelRanges(chunks * panels, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t chunk = cell / panels;
      RunPanel(args, cell % panels, tokens * chunk / chunks, tokens * (chunk + 1) / chunks);
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsLinearDense(const Problem& problem) {
  return problem.window().IsPointwise() && problem.input.plane() == 1 && problem.output.plane() == 1;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearDense(const Weight& weight, const Problem&) {
  return std::make_unique<FeaturePanels>(weight.ToDense(), weight.bias);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
