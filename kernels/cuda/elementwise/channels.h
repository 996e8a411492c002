// Channels copied from one activation to another on a GPU: rows concat_ and slice_ of kRows and kNhwc. A copy for each
// operand: in kRows of all its rows, in kNhwc of what it has of each position, or, where planes are concatenated, of
// each image. Also of bytes that all have one scale and zero point.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsConcat(const Problem& problem);  // planes in kNhwc alone
template <Layout kLayout, DType kDType>
void RunConcat(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void RunSlice(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_
