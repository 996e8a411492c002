// Depthwise convolution, fp32: rows depthwise_dense_<type>_<isa> in kPanels, f32 and bf16, and kNchw, any window. 3x3,
// 5x5 and 7x7 windows of stride 1 and 2 have loops of their own, and with AVX-512 3x3 windows over FP32 that keep the
// plane's size, or halve it, others in kPanels.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_DENSE_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_DENSE_H_

#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/cpu/window/halved_planes.h"
#include "kernels/cpu/window/plane_masks.h"

namespace swizzle::cpu {

// 3x3, stride 1, and an output as large as the input plane.
bool IsSame3x3(const Problem& problem);

// Channel by channel: the taps of the window, then the bias. Immutable.
class DepthwiseWeight final : public PackedWeight {
 public:
  DepthwiseWeight(const Weight& weight, const Problem& problem);
  // Shares the other's taps, for this problem's planes.
  DepthwiseWeight(const DepthwiseWeight& other, const Problem& problem);
  // Taps of one channel in row-major order.
  const float* taps(int64_t channel) const { return values_->data() + channel * pitch_; }
  float bias(int64_t channel) const { return (*values_)[(channel + 1) * pitch_ - 1]; }
  // What loops with AVX-512 over FP32 go by. Of the plane, if IsSame3x3; else empty.
  const std::vector<BlockMasks>& masks() const { return masks_; }
  // Likewise, if IsHalved3x3 and there is a plan; else without units.
  const HalvedPeriod& halved() const { return halved_; }
  size_t bytes() const override {
    return (shared_ ? 0 : values_->size() * sizeof(float)) + masks_.size() * sizeof(BlockMasks) +
           halved_.units.size() * sizeof(HalvedUnit);
  }

 private:
  void PlanPlanes(const Problem& problem);

  int64_t pitch_;
  bool shared_ = false;  // another holds the values, too
  std::shared_ptr<const std::vector<float>> values_;
  std::vector<BlockMasks> masks_;
  HalvedPeriod halved_;
};

// A function where it is all that follows the sum.
bool AcceptsDepthwise(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise(const Weight& weight, const Problem& problem);
StatusOr<SharedWeight> DepthwiseForPlane(const SharedWeight& form, const Problem& problem);
size_t DepthwiseWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void Depthwise(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_DENSE_H_
