#include "kernels/cpu/window/depthwise_blocked.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/block_rows.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/depthwise_blocked.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/simd/in_register-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMostColumns = 8;  // side by side: their sums, a row of taps and an input have registers
constexpr int kAnyWidth = 0, kAnyStride = 0;

alignas(64) constexpr float kPadding[kBlockChannels] = {};

// One row of the output of one block of channels.
struct Row {
  const Problem* problem;
  const float* input;  // of the window's first row that lies inside the plane
  const float* taps;   // of that row of the window
  int64_t height;      // rows of the window inside the plane
  const float* bias;
  const float* residual;  // null: none
  float* output;
};

// Input column x of a row of the input, which has `width` of them. kEdge: it may lie in the padding.
template <bool kEdge>
HWY_INLINE FloatVector LoadColumn(const float* row, int64_t x, int64_t width, int64_t lane) {
  const float* const from = kEdge && (x < 0 || x >= width) ? kPadding : row + x * kBlockChannels;
  return LoadAll(from + lane);
}

// Adds what one row of any window gives kCount neighbouring columns, whose first window begins at x.
template <int kCount, bool kEdge>
HWY_INLINE void AddAnyRow(const Problem& problem, const float* input, const float* taps, int64_t x, int64_t lane,
                          FloatVector (&sums)[kCount]) {
  const Window& window = problem.window();
  for (int64_t j = 0; j < window.kernel_w; ++j) {
    const FloatVector tap = LoadAll(taps + j * kBlockChannels + lane);
    SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
      const int64_t at = x + c * window.stride_w + j * window.dilation_w;
      sums[c] = hn::MulAdd(LoadColumn<kEdge>(input, at, problem.input.width, lane), tap, sums[c]);
    }
  }
}

// It sums likewise one row of a window of known width and stride, whose middle lies inside the plane.
template <int kWidth, int kStride, int kCount, bool kEdge>
HWY_INLINE void AddRow(const Problem& problem, const float* input, const float* taps, int64_t x, int64_t lane,
                       FloatVector (&sums)[kCount]) {
  constexpr int kInputs = (kCount - 1) * kStride + kWidth;
  FloatVector tap[kWidth];
  SWIZZLE_UNROLL for (int j = 0; j < kWidth; ++j) tap[j] = LoadAll(taps + j * kBlockChannels + lane);
#pragma GCC unroll 32  // there are at most 19
  for (int i = 0; i < kInputs; ++i) {
    const bool inner = i >= kWidth / 2 && i < kInputs - kWidth / 2;
    const FloatVector value = InRegister(inner ? LoadColumn<false>(input, x + i, problem.input.width, lane)
                                               : LoadColumn<kEdge>(input, x + i, problem.input.width, lane));
    SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
      const int j = i - c * kStride;
      if (j >= 0 && j < kWidth) sums[c] = hn::MulAdd(value, tap[j], sums[c]);
    }
  }
}

// kCount columns from `column` on. kEdge: their windows reach into the padding left or right of the plane.
template <int kWidth, int kStride, int kCount, bool kEdge>
void SumColumns(const Row& row, int64_t column) {
  const FloatTag d;
  const Problem& problem = *row.problem;
  const Window& window = problem.window();
  const int64_t x = column * window.stride_w - window.pad_left;
  const int64_t input_pitch = window.dilation_h * problem.input.width * kBlockChannels;
  const int64_t tap_pitch = window.kernel_w * kBlockChannels;
  const FloatVector low = hn::Set(d, problem.epilogue.low), high = hn::Set(d, problem.epilogue.high);
  float* const output = row.output + column * kBlockChannels;
  for (int64_t lane = 0; lane < kBlockChannels; lane += kLanes) {
    FloatVector sums[kCount];
    SWIZZLE_UNROLL for (auto& sum : sums) sum = LoadAll(row.bias + lane);
    const float *input = row.input, *taps = row.taps;
    for (int64_t i = 0; i < row.height; ++i, input += input_pitch, taps += tap_pitch) {
      if constexpr (kWidth == kAnyWidth) {
        AddAnyRow<kCount, kEdge>(problem, input, taps, x, lane, sums);
      } else {
        AddRow<kWidth, kStride, kCount, kEdge>(problem, input, taps, x, lane, sums);
      }
    }
    if (row.residual != nullptr) {
      const float* const residual = row.residual + column * kBlockChannels + lane;
      SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
        sums[c] = hn::Add(sums[c], LoadAll(residual + c * kBlockChannels));
      }
    }
    SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
      StoreAll(Clamp(sums[c], low, high), output + c * kBlockChannels + lane);
    }
  }
}

struct SumFunctions {
  using Sum = void (*)(const Row&, int64_t column);
  Sum inner, edge;
};
using ByCount = std::array<SumFunctions, kMostColumns>;  // of 1 column, of 2, ...

template <int kWidth, int kStride, int... kIndex>
constexpr ByCount FunctionsOf(std::integer_sequence<int, kIndex...>) {
  return {
      SumFunctions{SumColumns<kWidth, kStride, kIndex + 1, false>, SumColumns<kWidth, kStride, kIndex + 1, true>}...};
}
template <int kWidth, int kStride>
inline constexpr ByCount kFunctionsOf = FunctionsOf<kWidth, kStride>(std::make_integer_sequence<int, kMostColumns>());

// How far the window of the last column reaches from the input's first.
int64_t LastColumn(const Problem& problem) {
  const Window& window = problem.window();
  return (problem.output.width - 1) * window.stride_w - window.pad_left + (window.kernel_w - 1) * window.dilation_w;
}

const ByCount& FunctionsFor(const Problem& problem) {
  const Window& window = problem.window();
  const int64_t half = window.kernel_w / 2;
  const bool middles_inside = window.pad_left <= half && LastColumn(problem) < problem.input.width + half;
  if (middles_inside && window.dilation_w == 1) {
    if (window.kernel_w == 3 && window.stride_w == 1) return kFunctionsOf<3, 1>;
    if (window.kernel_w == 3 && window.stride_w == 2) return kFunctionsOf<3, 2>;
    if (window.kernel_w == 5 && window.stride_w == 1) return kFunctionsOf<5, 1>;
    if (window.kernel_w == 5 && window.stride_w == 2) return kFunctionsOf<5, 2>;
  }
  return kFunctionsOf<kAnyWidth, kAnyStride>;
}

// Rows of the output of one block of channels, from one row of the batch on. Single-owner.
class Rows {
 public:
  Rows(const KernelArgs& args, const ByCount& functions)
      : args_(args),
        problem_(*args.problem),
        window_(problem_.window()),
        weight_(static_cast<const BlockWeight&>(*args.weight)),
        functions_(functions),
        blocks_(CeilDiv(problem_.output.channels, kBlockChannels)),
        runs_(CeilDiv<int64_t>(problem_.output.width, kMostColumns)),
        shorter_(problem_.output.width / runs_),
        longer_(problem_.output.width % runs_) {
    row_.problem = &problem_;
  }

  void Run(int64_t block, int64_t begin, int64_t end) {
    const int64_t height = problem_.output.height;
    int64_t image = begin / height, y = begin % height;
    row_.bias = weight_.bias.data() + block * kBlockChannels;
    for (int64_t row = begin; row < end; ++row) {
      SetRow(block, image * blocks_ + block, y);
      SumRow();
      if (++y < height) continue;
      y = 0;
      ++image;
    }
  }

 private:
  void SetRow(int64_t block, int64_t plane, int64_t y) {
    const Extent &input = problem_.input, &output = problem_.output;
    const int64_t top = y * window_.stride_h - window_.pad_top, dilation = window_.dilation_h;
    int64_t first = 0, last = window_.kernel_h;
    if (top < 0) first = CeilDiv(-top, dilation);
    if (top + (last - 1) * dilation >= input.height) last = CeilDiv(std::max<int64_t>(input.height - top, 0), dilation);
    const int64_t at = (plane * output.height + y) * output.width * kBlockChannels;
    const int64_t from = (plane * input.height + top + first * dilation) * input.width;
    row_.input = args_.Input<float>(0) + from * kBlockChannels;
    row_.taps = weight_.values.data() + (block * weight_.taps + first * window_.kernel_w) * kBlockChannels;
    row_.height = last - first;
    row_.residual = args_.Residual<float>() == nullptr ? nullptr : args_.Residual<float>() + at;
    row_.output = args_.Output<float>() + at;
  }

  // In runs of nearly equal length: of short rows some columns would else be summed alone.
  void SumRow() const {
    const int64_t reach = (window_.kernel_w - 1) * window_.dilation_w;
    int64_t column = 0;
    for (int64_t run = 0; run < runs_; ++run) {
      const int64_t count = shorter_ + (run < longer_ ? 1 : 0), x = column * window_.stride_w - window_.pad_left;
      const bool inside = x >= 0 && x + (count - 1) * window_.stride_w + reach < problem_.input.width;
      const SumFunctions& sum = functions_[count - 1];
      (inside ? sum.inner : sum.edge)(row_, column);
      column += count;
    }
    if (!problem_.epilogue.function) return;
    ApplyFunction(*problem_.epilogue.function, row_.output, problem_.output.width * kBlockChannels);
  }

  const KernelArgs& args_;
  const Problem& problem_;
  const Window& window_;
  const BlockWeight& weight_;
  const ByCount& functions_;
  const int64_t blocks_;
  const int64_t runs_, shorter_, longer_;  // of columns; the length of the shorter ones; how many have one more
  Row row_;
};

}  // namespace

// The rows of all blocks in turn, row by row, are cut into runs; each run goes through them block by block, since a row
// of the input is read by several of the output.
void DepthwiseBlocked(const KernelArgs& args, Stream& stream) {
  const Extent& output = args.problem->output;
  const ByCount& functions = FunctionsFor(*args.problem);
  const int64_t blocks = CeilDiv(output.channels, kBlockChannels);
  const int64_t items = output.batch * output.height * blocks;
  CpuStream::From(stream).ParallelRanges(items, [&](int64_t, int64_t begin, int64_t end) {
    Rows rows(args, functions);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = CeilDiv(begin - block + blocks, blocks) - 1,
                    last = CeilDiv(end - block + blocks, blocks) - 1;
      rows.Run(block, first, last);
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsDepthwiseBlocked(const Problem& problem) { return EpilogueKeepsZero(problem); }

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
