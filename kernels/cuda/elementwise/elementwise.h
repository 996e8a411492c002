// Element-wise operations on a GPU: rows add_, multiply_, activation_ and function_ of kRows and kNhwc, and in half
// precision of kBatched. Each layout is one run of elements; spare positions are computed like the rest. May work in
// place.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

template <Layout kLayout, DType kDType>
void Add(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void Multiply(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void Activation(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void ApplyFunction(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_
