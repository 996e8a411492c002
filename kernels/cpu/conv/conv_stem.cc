#include "kernels/cpu/conv/conv_stem.h"

#include <algorithm>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_stem.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

using stem::Bands;
using stem::StemWeight;

constexpr int kBlockVectors = static_cast<int>(kBlockChannels / kLanes);
constexpr int kMostBlocks = HWY_TARGET == HWY_AVX3 ? 2 : 1;  // at once
// Of so many blocks at once: their sums, a vector of weights for each and an input have registers.
template <int kBlocks>
constexpr int kPositionsOf = HWY_TARGET == HWY_AVX3 ? 16 / kBlocks : 4;
static_assert(kPositionsOf<1> <= stem::kMostPositions);

// A row of some blocks of output channels.
struct Row {
  const float* input;   // of the band: what the first position's window begins with
  const int64_t* taps;  // from there, of each input of a window
  int64_t tap_count;
  const float* weights;  // of the first block
  const float* bias;
  const float* residual;  // null: none
  float* output;
  int64_t block_stride;  // of the output and the residual
  int64_t width;
  const Epilogue* epilogue;
};

// kPositionsOf positions from x on, of which `count` are stored.
template <int kStride, int kBlocks>
HWY_INLINE void RunTile(const Row& row, int64_t x, int64_t count) {
  constexpr int kVectors = kBlocks * kBlockVectors, kPositions = kPositionsOf<kBlocks>;
  const FloatTag d;
  FloatVector sums[kPositions][kVectors];
  SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
    const FloatVector bias = hn::LoadU(d, row.bias + v * kLanes);
    SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) sums[p][v] = bias;
  }
  const float* const input = row.input + x * kStride;
  for (int64_t tap = 0; tap < row.tap_count; ++tap) {
    FloatVector weights[kVectors];
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t block = v / kBlockVectors * row.tap_count;
      weights[v] = hn::LoadU(d, row.weights + (block + tap) * kBlockChannels + v % kBlockVectors * kLanes);
    }
    const float* const from = input + row.taps[tap];
    SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) {
      const FloatVector value = hn::Set(d, from[p * kStride]);
      SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) sums[p][v] = hn::MulAdd(value, weights[v], sums[p][v]);
    }
  }
  const FloatVector low = hn::Set(d, row.epilogue->low), high = hn::Set(d, row.epilogue->high);
  SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) {
    if (p >= count) break;
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t at = v / kBlockVectors * row.block_stride + (x + p) * kBlockChannels + v % kBlockVectors * kLanes;
      FloatVector sum = sums[p][v];
      if (row.residual != nullptr) sum = hn::Add(sum, hn::LoadU(d, row.residual + at));
      hn::StoreU(Clamp(sum, low, high), d, row.output + at);
    }
  }
}

template <int kStride, int kBlocks>
void RunRow(const Row& row) {
  for (int64_t x = 0; x < row.width; x += kPositionsOf<kBlocks>) RunTile<kStride, kBlocks>(row, x, row.width - x);
  if (!row.epilogue->function) return;
  for (int block = 0; block < kBlocks; ++block) {
    ApplyFunction(*row.epilogue->function, row.output + block * row.block_stride, row.width * kBlockChannels);
  }
}

using RowFunction = void (*)(const Row&);
template <int kBlocks>
RowFunction RowOf(int64_t stride) {
  return stride == 1 ? RunRow<1, kBlocks> : stride == 2 ? RunRow<2, kBlocks> : RunRow<4, kBlocks>;
}

// Some output rows of one image.
class Band {
 public:
  Band(const KernelArgs& args, const Bands& bands, float* copy)
      : args_(args),
        problem_(*args.problem),
        weight_(static_cast<const StemWeight&>(*args.weight)),
        bands_(bands),
        copy_(copy) {
    const Window& window = problem_.window();
    int64_t* tap = taps_;
    for (int64_t channel = 0; channel < problem_.input.channels; ++channel) {
      for (int64_t i = 0; i < window.kernel_h; ++i) {
        for (int64_t j = 0; j < window.kernel_w; ++j) {
          *tap++ = (channel * bands.rows + i * window.dilation_h) * bands.pitch + j * window.dilation_w;
        }
      }
    }
  }

  void Run(int64_t image, int64_t begin, int64_t end) {
    const Window& window = problem_.window();
    Copy(image, begin * window.stride_h - window.pad_top, Bands::RowsFor(problem_, end - begin));
    const int64_t blocks = CeilDiv(problem_.output.channels, kBlockChannels);
    for (int64_t block = 0; block < blocks;) {
      const bool pair = kMostBlocks > 1 && block + 1 < blocks;
      const RowFunction run = pair ? RowOf<kMostBlocks>(window.stride_w) : RowOf<1>(window.stride_w);
      for (int64_t y = begin; y < end; ++y) run(RowAt(image * blocks + block, y, y - begin));
      block += pair ? 2 : 1;
    }
  }

 private:
  Row RowAt(int64_t block_of_batch, int64_t y, int64_t band_row) const {
    const Extent& output = problem_.output;
    const int64_t block = block_of_batch % CeilDiv(output.channels, kBlockChannels);
    const int64_t at = (block_of_batch * output.plane() + y * output.width) * kBlockChannels;
    const float* const residual = args_.Residual<float>();
    Row row;
    row.input = copy_ + band_row * problem_.window().stride_h * bands_.pitch;
    row.taps = taps_;
    row.tap_count = weight_.taps;
    row.weights = weight_.values.data() + block * weight_.taps * kBlockChannels;
    row.bias = weight_.bias.data() + block * kBlockChannels;
    row.residual = residual == nullptr ? nullptr : residual + at;
    row.output = args_.Output<float>() + at;
    row.block_stride = output.plane() * kBlockChannels;
    row.width = output.width;
    row.epilogue = &problem_.epilogue;
    return row;
  }

  // Rows of all channels, the first of them input row `top`, which may lie above the plane.
  void Copy(int64_t image, int64_t top, int64_t rows) {
    const Extent& input = problem_.input;
    const int64_t left = problem_.window().pad_left, width = std::min(input.width, bands_.pitch - left);
    for (int64_t channel = 0; channel < input.channels; ++channel) {
      const float* const plane = args_.Input<float>(0) + (image * input.channels + channel) * input.plane();
      for (int64_t i = 0; i < rows; ++i) {
        float* const to = copy_ + (channel * bands_.rows + i) * bands_.pitch;
        const int64_t y = top + i;
        if (y < 0 || y >= input.height) {
          std::fill_n(to, bands_.pitch, 0.0f);
          continue;
        }
        std::fill_n(to, left, 0.0f);
        std::copy_n(plane + y * input.width, width, to + left);
        std::fill_n(to + left + width, bands_.pitch - left - width, 0.0f);
      }
    }
  }

  const KernelArgs& args_;
  const Problem& problem_;
  const StemWeight& weight_;
  const Bands& bands_;
  float* const copy_;
  int64_t taps_[stem::kMostChannels * stem::kMostTaps];
};

}  // namespace

void ConvStem(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Bands bands(problem);
  const int64_t height = problem.output.height;
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    Band band(args, bands, reinterpret_cast<float*>(args.workspace.data()) + slot * bands.floats(problem));
    while (begin < end) {
      const int64_t image = begin / height, row = begin % height;
      const int64_t rows = std::min({stem::kBandRows, height - row, end - begin});
      band.Run(image, row, row + rows);
      begin += rows;
    }
  };
  CpuStream::From(stream).ParallelRanges(problem.output.batch * height, run);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsConvStem(const Problem& problem) {
  const Window& window = problem.window();
  const bool has_stride = window.stride_w == 1 || window.stride_w == 2 || window.stride_w == 4;
  return EpilogueKeepsZero(problem) && problem.input.channels <= stem::kMostChannels &&
         window.taps() <= stem::kMostTaps && has_stride;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvStem(const Weight& weight, const Problem&) {
  const DenseMatrix matrix = weight.ToDense();
  auto packed = std::make_unique<stem::StemWeight>();
  packed->taps = matrix.cols;
  packed->bias = weight.bias;
  packed->bias.resize(static_cast<size_t>(RoundUp(matrix.rows, kBlockChannels)));
  packed->values.resize(packed->bias.size() * static_cast<size_t>(matrix.cols));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const int64_t at = (row / kBlockChannels * matrix.cols + col) * kBlockChannels + row % kBlockChannels;
      packed->values[static_cast<size_t>(at)] = matrix.values[static_cast<size_t>(row * matrix.cols + col)];
    }
  }
  return packed;
}

size_t ConvStemWorkspaceBytes(const Problem& problem) {
  const stem::Bands bands(problem);
  return static_cast<size_t>(bands.floats(problem)) * sizeof(float) * static_cast<size_t>(problem.threads);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
