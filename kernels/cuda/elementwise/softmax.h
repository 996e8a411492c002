// Softmax over channels on a GPU: rows softmax_rows_ and softmax_nhwc_. The largest value is taken off first, so no
// exponential overflows. Three passes over the input, of which all but the first come from near memory.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SOFTMAX_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SOFTMAX_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsSoftmax(const Problem& problem);  // no epilogue
template <Layout kLayout, DType kDType>
void Softmax(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_SOFTMAX_H_
