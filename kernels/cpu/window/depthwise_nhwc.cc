#include "kernels/cpu/window/depthwise_nhwc.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/function.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/depthwise_nhwc.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Output columns side by side, as registers allow.
constexpr int kColumns = kLanes == 16 ? 8 : 4;

// One row of the output.
class Row {
 public:
  Row(const KernelArgs& args, int64_t index)
      : problem_(*args.problem),
        window_(problem_.window()),
        weight_(static_cast<const NhwcDepthwiseWeight&>(*args.weight)),
        channels_(problem_.input.channels),
        width_(problem_.input.width) {
    const int64_t image = index / problem_.output.height;
    top_ = index % problem_.output.height * window_.stride_h - window_.pad_top;
    input_ = args.Input<float>(0) + image * problem_.input.plane() * channels_;
    output_ = args.Output<float>() + index * problem_.output.width * channels_;
  }

  void Run() const {
    const int64_t columns = problem_.output.width, reach = (window_.kernel_w - 1) * window_.dilation_w;
    const int64_t inner = std::min(CeilDiv<int64_t>(window_.pad_left, window_.stride_w), columns);
    const int64_t last = width_ - 1 - reach + window_.pad_left;  // where the last window inside the row begins
    const int64_t outer = last < 0 ? inner : std::clamp(last / window_.stride_w + 1, inner, columns);
    int64_t column = 0;
    for (; column < inner; ++column) SumColumns<1>(column);
    for (; column + kColumns <= outer; column += kColumns) SumColumns<kColumns>(column);
    for (; column < columns; ++column) SumColumns<1>(column);
    if (!problem_.epilogue.function) return;
    ApplyFunction(*problem_.epilogue.function, output_, columns * channels_);
  }

 private:
  // Of more than one column all windows are inside the row.
  template <int kCount>
  void SumColumns(int64_t column) const {
    for (int64_t channel = 0; channel < channels_; channel += kLanes) {
      channels_ - channel < kLanes ? SumLanes<kCount, true>(column, channel) : SumLanes<kCount, false>(column, channel);
    }
  }

  template <int kCount, bool kPart>
  HWY_INLINE void SumLanes(int64_t column, int64_t channel) const {
    const FloatTag d;
    const int64_t left = column * window_.stride_w - window_.pad_left, step = window_.stride_w * channels_;
    FloatVector sums[kCount];
    SWIZZLE_UNROLL for (auto& sum : sums) sum = hn::LoadU(d, weight_.bias() + channel);
    for (int64_t i = 0; i < window_.kernel_h; ++i) {
      const int64_t y = top_ + i * window_.dilation_h;
      if (y < 0 || y >= problem_.input.height) continue;
      for (int64_t j = 0; j < window_.kernel_w; ++j) {
        const int64_t x = left + j * window_.dilation_w;
        if (kCount == 1 && (x < 0 || x >= width_)) continue;
        const FloatVector tap = hn::LoadU(d, weight_.tap(i * window_.kernel_w + j) + channel);
        const float* const from = input_ + (y * width_ + x) * channels_ + channel;
        SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
          sums[c] = hn::MulAdd(Load<kPart>(from + c * step, channel), tap, sums[c]);
        }
      }
    }
    const FloatVector low = hn::Set(d, problem_.epilogue.low), high = hn::Set(d, problem_.epilogue.high);
    SWIZZLE_UNROLL for (int c = 0; c < kCount; ++c) {
      float* const to = output_ + (column + c) * channels_ + channel;
      const FloatVector result = Clamp(sums[c], low, high);
      if constexpr (kPart) {
        StoreFirst(result, d, to, channels_ - channel);
      } else {
        hn::StoreU(result, d, to);
      }
    }
  }

  template <bool kPart>
  HWY_INLINE FloatVector Load(const float* from, int64_t channel) const {
    const FloatTag d;
    if constexpr (kPart) return LoadFirst(d, from, channels_ - channel, hn::Zero(d));
    return hn::LoadU(d, from);
  }

  const Problem& problem_;
  const Window& window_;
  const NhwcDepthwiseWeight& weight_;
  const int64_t channels_, width_;
  int64_t top_;  // the input's row at the window's first
  const float* input_;
  float* output_;
};

}  // namespace

void DepthwiseNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& output = args.problem->output;
  CpuStream::From(stream).ParallelRanges(output.batch * output.height, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) Row(args, row).Run();
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

NhwcDepthwiseWeight::NhwcDepthwiseWeight(const Weight& weight)
    : taps_(weight.cols()), pitch_(RoundUp<int64_t>(weight.rows(), 16)), values_((taps_ + 1) * pitch_) {
  const DenseMatrix matrix = weight.ToDense();
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t tap = 0; tap < taps_; ++tap) values_[tap * pitch_ + row] = matrix.values[row * taps_ + tap];
  }
  std::ranges::copy(weight.bias, values_.begin() + taps_ * pitch_);
}

bool AcceptsDepthwiseNhwc(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  return !epilogue.residual && (!epilogue.function || !epilogue.Clamps());
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseNhwc(const Weight& weight, const Problem&) {
  return std::make_unique<NhwcDepthwiseWeight>(weight);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
