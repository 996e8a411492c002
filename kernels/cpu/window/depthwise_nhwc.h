// Depthwise convolution of FP32 whose channels are neighbours: rows depthwise_nhwc_dense_f32_<isa>, any window.
//
// Channels are lanes. Up to eight output columns are summed side by side, so that a tap is loaded once for all of them.
// Tokens of a Transformer are stored so: a plane of theirs is then read as it lies, where others transpose it twice.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_NHWC_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_NHWC_H_

#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// Tap by tap, each of all channels; then the bias. Rows are filled up to whole vectors. Immutable.
class NhwcDepthwiseWeight final : public PackedWeight {
 public:
  explicit NhwcDepthwiseWeight(const Weight& weight);
  const float* tap(int64_t tap) const { return values_.data() + tap * pitch_; }
  const float* bias() const { return values_.data() + taps_ * pitch_; }
  size_t bytes() const override { return values_.size() * sizeof(float); }

 private:
  int64_t taps_, pitch_;
  std::vector<float> values_;
};

// Without a residual.
bool AcceptsDepthwiseNhwc(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseNhwc(const Weight& weight, const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void DepthwiseNhwc(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_NHWC_H_
