// Element types of less than a byte, and of numbers with a point in one byte: tensors here hold their elements in the
// next wider type, which has all of them. Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_NARROW_TYPES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_NARROW_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/dtype.h"

namespace swizzle {

struct NarrowType {
  int64_t number;  // onnx.TensorProto.DataType
  std::string_view name;
  int bits;    // of an element, the first of a byte lowest
  DType held;  // INT8 and UINT8, or FP16 and FP32
  // Of types with a point: bits of the exponent, and what is taken off it. 0: it has none.
  int exponent_bits = 0, bias = 0;

  int64_t PackedBytes(int64_t elements) const { return (elements * bits + 7) / 8; }
};

// Null for all others.
const NarrowType* FindNarrowType(int64_t number);

// The elements as the wider type's. REQUIRES: as many bytes as they take packed.
std::vector<std::byte> Widen(const NarrowType& type, std::span<const std::byte> packed, int64_t elements);

// Whether an operator only moves elements of its input 0, or knows what these types stand for: no others read them.
bool MovesElements(std::string_view op);
bool TakesNarrowTypes(std::string_view op);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_NARROW_TYPES_H_
