// A dense weight in device memory, in the element type of a problem. Immutable.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_WEIGHT_H_
#define SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_WEIGHT_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/runtime/device_array.h"

namespace swizzle::cuda {

// [M][channels][taps] -> [M][taps][channels].
std::vector<float> ChannelsInnermost(const DenseMatrix& matrix, int64_t taps);

class DenseWeight final : public PackedWeight {
 public:
  struct Packing {
    DType dtype = DType::kFloat32;  // of the matrix
    DType bias_dtype = DType::kFloat32;
    bool channels_innermost = false;  // columns in the order of kNhwc, [kernel_h][kernel_w][channels]
    bool always_bias = false;         // zeros where the layer has none
  };

  // [M, K], rows one after the other, and the bias, on the current device.
  static StatusOr<std::unique_ptr<PackedWeight>> Make(const Weight& weight, const Problem& problem,
                                                      const Packing& packing);
  static const DenseWeight& From(const KernelArgs& args) { return static_cast<const DenseWeight&>(*args.weight); }

  const void* matrix() const { return matrix_.data(); }
  // [M], or null.
  const void* bias() const { return bias_.data(); }
  size_t bytes() const override { return matrix_.bytes() + bias_.bytes(); }

 private:
  DeviceArray<std::byte> matrix_;
  DeviceArray<std::byte> bias_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_WEIGHT_H_
