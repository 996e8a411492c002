// Element types, shapes and non-owning tensor views. All are plain values; a view never outlives its buffer.
#ifndef SWIZZLE_KERNELS_TENSOR_H_
#define SWIZZLE_KERNELS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace swizzle {

enum class DType : uint8_t {
  kBool, kUint8, kUint16, kUint32, kUint64, kInt8, kInt16, kInt32, kInt64,
  kFloat16, kFloat32, kFloat64, kBFloat16, kString,
};

// Bytes of one element; 0 for kString, whose elements vary.
size_t ElementBytes(DType dtype);

// The Open Inference Protocol's name: "FP32", "INT64", "BYTES", ...
std::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

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

#endif  // SWIZZLE_KERNELS_TENSOR_H_
