// What slides windows over the channels of an activation of bytes on a GPU, in kRows and kNhwc: depthwise convolution
// (rows depthwise_<layout>_dense_u8_sm75), max and average pooling (max_pool_<layout>_u8_sm75,
// average_pool_<layout>_u8_sm75). Sums are exact; they end as whole_numbers/steps.h says. An average counts either what
// padding adds or has no padding; the largest of a window keeps scale and zero point.
//
// In kNhwc a thread takes four neighbouring channels of an output, in kRows neighbouring outputs of a line. Averages of
// whole planes are a reduction by a warp.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_WINDOW_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_WINDOW_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

template <Layout kLayout>
bool AcceptsDepthwiseBytes(const Problem& problem);
template <Layout kLayout>
bool AcceptsMaxPoolBytes(const Problem& problem);
template <Layout kLayout>
bool AcceptsAveragePoolBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseBytes(const Weight& weight, const Problem& problem);

template <Layout kLayout>
void DepthwiseBytes(const KernelArgs& args, Stream& stream);
template <Layout kLayout>
void MaxPoolBytes(const KernelArgs& args, Stream& stream);
template <Layout kLayout>
void AveragePoolBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_WINDOW_BYTES_H_
