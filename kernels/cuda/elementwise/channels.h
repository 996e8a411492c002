// Channels copied from one activation to another on a GPU: rows concat_ and slice_ of kRows, kBatched and kNhwc. A copy
// for each operand: in kNhwc of what it has of each position, or, where planes are concatenated, of each image, else of
// all its rows. None of what a plan has put where it goes. Also of bytes that all have one scale and zero point.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsConcat(const Problem& problem);  // planes in kNhwc alone
bool ConcatsChannels(const Problem& problem);
template <Layout kLayout, DType kDType>
void RunConcat(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void RunSlice(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CHANNELS_H_
