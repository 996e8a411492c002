// Which of the real types that kernels compute with a DType is: FP32, or a half. One switch over all types decides, so
// that a half type that is added is the compiler's error here, and passes nowhere for one that was there before. Pure
// functions, for GPUs' kernels too.
#ifndef SWIZZLE_KERNELS_BASE_REAL_TYPES_H_
#define SWIZZLE_KERNELS_BASE_REAL_TYPES_H_

#include "kernels/base/check.h"
#include "kernels/base/dtype.h"
#include "kernels/base/on_devices.h"

namespace swizzle {

// half.operator()<dtype>() where `dtype` is a half, else other().
SWIZZLE_CALLS_ANY
template <typename OfHalf, typename Other>
SWIZZLE_ON_DEVICES_TOO constexpr auto VisitHalfOr(DType dtype, const OfHalf& half, const Other& other) {
  switch (dtype) {
    case DType::kFloat16:
      return half.template operator()<DType::kFloat16>();
    case DType::kBFloat16:
      return half.template operator()<DType::kBFloat16>();
    case DType::kBool:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kString:
      break;
  }
  return other();
}

constexpr bool IsHalf(DType dtype) {
  return VisitHalfOr(
      dtype, [&]<DType>() { return true; }, [] { return false; });
}

// visit.operator()<dtype>(). REQUIRES: `dtype` is a half.
SWIZZLE_CALLS_ANY
template <typename Visit>
SWIZZLE_ON_DEVICES_TOO constexpr auto VisitHalf(DType dtype, const Visit& visit) {
  using Made = decltype(visit.template operator()<DType::kFloat16>());
  return VisitHalfOr(dtype, visit, []() -> Made { SWIZZLE_NOT_REACHED("dtype is a half"); });
}

// VisitReal takes FP32, too.
SWIZZLE_CALLS_ANY
template <typename Visit>
SWIZZLE_ON_DEVICES_TOO constexpr auto VisitReal(DType dtype, const Visit& visit) {
  if (dtype == DType::kFloat32) return visit.template operator()<DType::kFloat32>();
  return VisitHalf(dtype, visit);
}

// VisitFloat32Or16 takes FP32 and FP16, and aborts at any other type.
template <typename Visit>
auto VisitFloat32Or16(DType dtype, const Visit& visit) {
  if (dtype == DType::kFloat32) return visit.template operator()<DType::kFloat32>();
  SWIZZLE_CHECK(dtype == DType::kFloat16);
  return visit.template operator()<DType::kFloat16>();
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_REAL_TYPES_H_
