// Images that arrive as bytes in kNchw, which stand for scale * (byte - zero point), as real numbers in another layout:
// rows convert_nchw_u8_ and scale_nchw_u8_. The latter are depthwise convolutions of one tap, which models normalise
// images by, and so read bytes and write what the first layer wants in one pass.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

template <Layout kLayout, DType kDType>
void ConvertBytes(const KernelArgs& args, Stream& stream);

// One tap, and no residual.
bool AcceptsScaleBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareScaleBytes(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void ScaleBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_BYTES_H_
