#include "model_loader/fallback/array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "kernels/base/half.h"

namespace swizzle::fallback {
namespace {

// Elements as they lie in memory where C++ has no type for them.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

// Rounds to nearest, ties to even.
Half ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // rounds past the largest half
  if (magnitude < 0x38800000u) {                                                 // a subnormal half, in units of 2^-24
    const float units = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(units))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
}

BFloat ToBFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// An element as its compute type.
template <typename T>
auto Widen(T element) {
  if constexpr (std::is_same_v<T, Half>)
    return FloatOfHalf(element.bits);
  else if constexpr (std::is_same_v<T, BFloat>)
    return FloatOfBfloat16(element.bits);
  else if constexpr (std::is_same_v<T, Bool>)
    return static_cast<int64_t>(element.byte != 0);
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, uint64_t>)
    return element;
  else
    return static_cast<int64_t>(element);
}

template <typename T>
int64_t Truncated(T value) {
  constexpr T kBound = static_cast<T>(9223372036854775808.0);  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kBound) return std::numeric_limits<int64_t>::max();
  if (value <= -kBound) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

template <typename T, typename Wide>
T Narrow(Wide value) {
  if constexpr (std::is_same_v<T, Half>)
    return ToHalf(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, BFloat>)
    return ToBFloat(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, Bool>)
    return Bool{static_cast<uint8_t>(value != Wide(0))};
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(value);
  else if constexpr (std::is_floating_point_v<Wide>)
    return static_cast<T>(Truncated(value));
  else
    return static_cast<T>(value);
}

// Calls visit(T()) with the type of elements in memory; false for types that have none.
template <typename Visit>
bool VisitElementType(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kBool:
      visit(Bool());
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
      visit(Half());
      return true;
    case DType::kFloat32:
      visit(float());
      return true;
    case DType::kFloat64:
      visit(double());
      return true;
    case DType::kBFloat16:
      visit(BFloat());
      return true;
    case DType::kString:
      return false;
  }
  return false;
}

}  // namespace

int64_t Array::elements() const {
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  return count;
}

Array Array::WithShape(Shape other) const {
  Array array{dtype, std::move(other), data};
  SWIZZLE_CHECK(array.elements() == elements());
  return array;
}

StatusOr<Array> Memory::Allocate(DType dtype, Shape shape) {
  if (shape.size() > kMaxRank)
    return InvalidArgument("a value has ", shape.size(), " dimensions; the limit is ", kMaxRank);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  Shape counted = shape;
  for (int64_t& dimension : counted) dimension = std::max<int64_t>(dimension, 1);
  const StatusOr<int64_t> bound = ElementCount(counted);
  const auto element_bytes = static_cast<int64_t>(ElementBytes(dtype));
  if (element_bytes == 0) return Unimplemented("strings are not supported");
  if (!bound.ok() || *bound > limits_.max_array_bytes / element_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "a value of shape ", ShapeText(shape), " and type ",
                     DTypeName(dtype), " is larger than the limit of ", limits_.max_array_bytes, " bytes");
  }
  const int64_t bytes = elements * element_bytes;
  if (live_bytes_.fetch_add(bytes) + bytes > limits_.max_live_bytes) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "the model's values together need more than the limit of ",
                     limits_.max_live_bytes, " bytes");
  }
  auto* data = static_cast<std::byte*>(
      ::operator new[](static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::align_val_t(64), std::nothrow));
  if (data == nullptr) {
    live_bytes_ -= bytes;
    return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes");
  }
  const auto release = [self = shared_from_this(), bytes](std::byte* memory) {
    ::operator delete[](memory, std::align_val_t(64));
    self->live_bytes_ -= bytes;
  };
  return Array{dtype, std::move(shape), std::shared_ptr<std::byte[]>(data, release)};
}

StatusOr<Array> Convert(Memory& memory, const Array& from, DType to) {
  if (from.dtype == to) return from;
  SWIZZLE_ASSIGN_OR_RETURN(Array result, memory.Allocate(to, from.shape));
  VisitElementType(from.dtype, [&]<typename From>(From) {
    VisitElementType(to, [&]<typename To>(To) {
      const std::span<const From> source = from.As<From>();
      const std::span<To> target = result.Mutable<To>();
      for (size_t i = 0; i < source.size(); ++i) target[i] = Narrow<To>(Widen(source[i]));
    });
  });
  return result;
}

DType ComputeType(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return DType::kFloat32;
    case DType::kFloat64:
      return DType::kFloat64;
    case DType::kUint64:
      return DType::kUint64;
    default:
      return DType::kInt64;
  }
}

bool IsFloatingType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

}  // namespace swizzle::fallback
