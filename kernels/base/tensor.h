// Shapes and non-owning tensor views. All are plain values; a view never outlives its buffer.
#ifndef SWIZZLE_KERNELS_BASE_TENSOR_H_
#define SWIZZLE_KERNELS_BASE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/dtype.h"
#include "kernels/base/status.h"

namespace swizzle {

// Outermost dimension first. -1 stands for a dimension that is free (in specifications, never in data).
using Shape = std::vector<int64_t>;

// "[1,28,28]".
std::string ShapeText(const Shape& shape);

// The product of the dimensions. INVALID_ARGUMENT if one is negative or the product overflows int64.
StatusOr<int64_t> ElementCount(const Shape& shape);

// A dense, row-major, little-endian tensor in somebody else's memory. kString: concatenated (uint32 length, bytes).
struct TensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::span<const std::byte> bytes;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_TENSOR_H_
