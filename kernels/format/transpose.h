// A matrix's columns as rows. Pure.
#ifndef SWIZZLE_KERNELS_FORMAT_TRANSPOSE_H_
#define SWIZZLE_KERNELS_FORMAT_TRANSPOSE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace swizzle {

// to[col * rows + row] = from[row * cols + col]. REQUIRES: both have rows * cols elements, and don't overlap.
void Transpose(std::span<const float> from, int64_t rows, int64_t cols, std::span<float> to);

std::vector<float> Transposed(std::span<const float> from, int64_t rows, int64_t cols);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_TRANSPOSE_H_
