// How long a convolution or linear layer takes whose input is sparse, too: encoded to bitmaps, unfolded, and multiplied
// where both sides hold something (conv/bitmap_product.h), in FP16. No row of the kernel table does it, since how long
// it takes goes by the input's zeros.
//
// This header needs no CUDA: in programs these functions open the module (cuda_module.h) and call its own.
#ifndef SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_
#define SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_

#include <span>

#include "kernels/backend/backend.h"

namespace swizzle {

// In microseconds, the least of a few runs, encoding included. `input` is the problem's, in NCHW. UNIMPLEMENTED in
// a build without CUDA. REQUIRES: `gpu` is a CUDA backend; the problem is a convolution of the weight.
StatusOr<double> TimeSparseInput(Backend& gpu, const Problem& problem, const Weight& weight,
                                 std::span<const float> input);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_
