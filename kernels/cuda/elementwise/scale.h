// The product with one factor for each channel of each image (squeeze-and-excite) on a GPU: rows scale_rows_ and
// scale_nhwc_.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SCALE_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SCALE_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsScale(const Problem& problem);  // fewer than about 2^31 elements
template <Layout kLayout, DType kDType>
void Scale(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SCALE_H_
