// Division and rounding of whole numbers that are not negative. Pure functions.
#ifndef SWIZZLE_KERNELS_BASE_INTEGERS_H_
#define SWIZZLE_KERNELS_BASE_INTEGERS_H_

#include <concepts>
#include <type_traits>

namespace swizzle {

// How many units it takes to hold `value`.
template <std::integral Value, std::integral Unit>
constexpr auto CeilDiv(Value value, Unit unit) {
  using Common = std::common_type_t<Value, Unit>;
  return (static_cast<Common>(value) + static_cast<Common>(unit) - 1) / static_cast<Common>(unit);
}

// The least multiple of `unit` that is not below `value`.
template <std::integral Value, std::integral Unit>
constexpr auto RoundUp(Value value, Unit unit) {
  return CeilDiv(value, unit) * static_cast<std::common_type_t<Value, Unit>>(unit);
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_INTEGERS_H_
