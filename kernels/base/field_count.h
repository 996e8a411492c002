// How many fields an aggregate has, so that code which has to know every one of them can assert it. A base counts as
// one. Where an aggregate has no base, a structured binding that names its fields says the same.
#ifndef SWIZZLE_KERNELS_BASE_FIELD_COUNT_H_
#define SWIZZLE_KERNELS_BASE_FIELD_COUNT_H_

#include <cstddef>

namespace swizzle {
namespace internal {
// Stands for a field of any type where nothing is evaluated.
struct AnyField {
  template <typename T>
  operator T() const noexcept;  // NOLINT: implicit, which is its purpose
};
}  // namespace internal

template <typename Aggregate, typename... Fields>
constexpr size_t FieldCount() {
  if constexpr (requires { Aggregate{Fields{}..., internal::AnyField{}}; }) {
    return FieldCount<Aggregate, Fields..., internal::AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_FIELD_COUNT_H_
