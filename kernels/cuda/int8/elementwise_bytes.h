// Bytes element by element on a GPU: sums of two and clamps, with the scales that their operands have: rows
// add_<layout>_u8_sm75 and activation_<layout>_u8_sm75.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_ELEMENTWISE_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_ELEMENTWISE_BYTES_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

bool AcceptsElementwiseBytes(const Problem& problem);
// kAdd, or kActivation where there is one input: y = fma(a, a_scale, fma(b, b_scale, offset)), rounded and held.
void AddBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_ELEMENTWISE_BYTES_H_
