// How long a convolution or linear layer takes on this very input by the row that skips zeros of both sides
// (conv/conv_bitmap.h), in FP16, encoding included.
//
// This header needs no CUDA: in programs these functions open the module (cuda_module.h) and call its own.
#ifndef SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_
#define SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_

#include <span>

#include "kernels/backend/backend.h"

namespace swizzle {

// In microseconds, the least of a few runs. `input` is the problem's, in NCHW. UNIMPLEMENTED in a build without CUDA,
// and where one row of the batch is too large. REQUIRES: `gpu` is a CUDA backend; the problem is a convolution of the
// weight.
StatusOr<double> TimeSparseInput(Backend& gpu, const Problem& problem, const Weight& weight,
                                 std::span<const float> input);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CUDA_SPARSE_INPUT_H_
