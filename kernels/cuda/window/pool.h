// Pooling on a GPU: rows max_pool_ and average_pool_ of kRows and kNhwc, and in half precision of kBatched, any window.
// An average or a maximum of the whole plane is a reduction: a warp for a plane in kRows, or for one of eight images in
// kBatched, a block for 32 channels of an image in kNhwc. Other windows take one thread an output.
#ifndef SWIZZLE_KERNELS_CUDA_WINDOW_POOL_H_
#define SWIZZLE_KERNELS_CUDA_WINDOW_POOL_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsPool(const Problem& problem);          // no residual; fewer than about 2^31 elements
bool AcceptsPoolOfPlanes(const Problem& problem);  // and of whole ones: from kBatched to kRows
template <Layout kLayout, DType kDType>
void MaxPool(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void AveragePool(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_WINDOW_POOL_H_
