// The element types of ONNX: their numbers, their forms in memory, and how Cast turns one into another. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_TYPES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_TYPES_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/base/dtype.h"
#include "kernels/base/half.h"
#include "kernels/base/status.h"

namespace swizzle {

// The type that onnx.TensorProto.DataType gives this number. UNIMPLEMENTED for those no tensor can have.
StatusOr<DType> ElementTypeOf(int64_t number);

// Halves included.
bool IsFloating(DType dtype);

// Elements as they lie in memory where C++ has no type for them.
struct HalfElement {
  uint16_t bits;
};
struct Bfloat16Element {
  uint16_t bits;
};
struct BoolElement {
  uint8_t byte;
};

// Calls visit(T()) with the type of elements in memory; false for types that have none (strings).
template <typename Visit>
bool VisitElementType(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kBool:
      visit(BoolElement());
      return true;
    case DType::kUint8:
      visit(uint8_t());
      return true;
    case DType::kUint16:
      visit(uint16_t());
      return true;
    case DType::kUint32:
      visit(uint32_t());
      return true;
    case DType::kUint64:
      visit(uint64_t());
      return true;
    case DType::kInt8:
      visit(int8_t());
      return true;
    case DType::kInt16:
      visit(int16_t());
      return true;
    case DType::kInt32:
      visit(int32_t());
      return true;
    case DType::kInt64:
      visit(int64_t());
      return true;
    case DType::kFloat16:
      visit(HalfElement());
      return true;
    case DType::kFloat32:
      visit(float());
      return true;
    case DType::kFloat64:
      visit(double());
      return true;
    case DType::kBFloat16:
      visit(Bfloat16Element());
      return true;
    case DType::kString:
      return false;
  }
  return false;
}

// The type in which arithmetic on elements of `dtype` is done: FP32 for halves, INT64 for narrower integers and bool.
DType ComputeType(DType dtype);

// An element as its compute type; exact.
template <typename T>
auto Widened(T element) {
  if constexpr (std::is_same_v<T, HalfElement>)
    return FloatOfHalf(element.bits);
  else if constexpr (std::is_same_v<T, Bfloat16Element>)
    return FloatOfBfloat16(element.bits);
  else if constexpr (std::is_same_v<T, BoolElement>)
    return static_cast<int64_t>(element.byte != 0);
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, uint64_t>)
    return element;
  else
    return static_cast<int64_t>(element);
}

// Towards 0, saturating; 0 for what is not a number.
template <typename T>
int64_t Truncated(T value) {
  constexpr T kBound = static_cast<T>(9223372036854775808.0);  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kBound) return std::numeric_limits<int64_t>::max();
  if (value <= -kBound) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// Cast: floating to integers truncates, saturating at 64 bits; integers wrap; anything but zero is true.
template <typename T, typename Wide>
T Narrowed(Wide value) {
  if constexpr (std::is_same_v<T, HalfElement>)
    return HalfElement{HalfOfFloat(static_cast<float>(value))};
  else if constexpr (std::is_same_v<T, Bfloat16Element>)
    return Bfloat16Element{Bfloat16OfFloat(static_cast<float>(value))};
  else if constexpr (std::is_same_v<T, BoolElement>)
    return BoolElement{static_cast<uint8_t>(value != Wide(0))};
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value);
  else if constexpr (std::is_floating_point_v<Wide>)
    return static_cast<T>(Truncated(value));
  else
    return static_cast<T>(value);
}

// `whole` as a tensor of `dtype`, no floating type, holds it.
int64_t Wrapped(int64_t whole, DType dtype);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_TYPES_H_
