// Planes made larger or smaller on a GPU, and channels that become blocks of positions: rows resize_ and
// depth_to_space_ of kRows and kNhwc. A thread for each element of the output. Bytes are resized to the nearest.
#ifndef SWIZZLE_KERNELS_CUDA_WINDOW_RESIZE_H_
#define SWIZZLE_KERNELS_CUDA_WINDOW_RESIZE_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsResize(const Problem& problem);  // fewer than about 2^31 elements
template <Layout kLayout, DType kDType>
void Resize(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void DepthToSpace(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_WINDOW_RESIZE_H_
