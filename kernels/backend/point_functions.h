// What each PointOp computes, one truth for all devices: the functions of kernels/operator/element_functions.h. Pure
// functions, for GPUs' kernels too.
#ifndef SWIZZLE_KERNELS_BACKEND_POINT_FUNCTIONS_H_
#define SWIZZLE_KERNELS_BACKEND_POINT_FUNCTIONS_H_

#include <concepts>

#include "kernels/backend/device_functions.h"
#include "kernels/base/on_devices.h"
#include "kernels/operator/element_functions.h"

namespace swizzle {

#define SWIZZLE_VISIT_POINT(Name) \
  case PointOp::k##Name:          \
    return visit(Name())

// visit(function), which takes InputsOf(op) numbers of one type; of whole numbers not all do.
SWIZZLE_CALLS_ANY
template <typename Visit>
SWIZZLE_ON_DEVICES_TOO void VisitPointOp(PointOp op, float alpha, float beta, const Visit& visit) {
  using namespace elementwise;
  switch (op) {
    SWIZZLE_VISIT_POINT(Copy);
    SWIZZLE_VISIT_POINT(Abs);
    SWIZZLE_VISIT_POINT(Neg);
    SWIZZLE_VISIT_POINT(Relu);
    SWIZZLE_VISIT_POINT(Not);
    SWIZZLE_VISIT_POINT(Floor);
    SWIZZLE_VISIT_POINT(Ceil);
    SWIZZLE_VISIT_POINT(Exp);
    SWIZZLE_VISIT_POINT(Log);
    SWIZZLE_VISIT_POINT(Sqrt);
    SWIZZLE_VISIT_POINT(Reciprocal);
    SWIZZLE_VISIT_POINT(Erf);
    SWIZZLE_VISIT_POINT(Sin);
    SWIZZLE_VISIT_POINT(Cos);
    SWIZZLE_VISIT_POINT(Tanh);
    SWIZZLE_VISIT_POINT(Sigmoid);
    SWIZZLE_VISIT_POINT(Softplus);
    SWIZZLE_VISIT_POINT(Gelu);
    SWIZZLE_VISIT_POINT(GeluTanh);
    SWIZZLE_VISIT_POINT(Add);
    SWIZZLE_VISIT_POINT(Sub);
    SWIZZLE_VISIT_POINT(Mul);
    SWIZZLE_VISIT_POINT(Div);
    SWIZZLE_VISIT_POINT(Pow);
    SWIZZLE_VISIT_POINT(Max);
    SWIZZLE_VISIT_POINT(Min);
    SWIZZLE_VISIT_POINT(PRelu);
    SWIZZLE_VISIT_POINT(Equal);
    SWIZZLE_VISIT_POINT(Greater);
    SWIZZLE_VISIT_POINT(GreaterOrEqual);
    SWIZZLE_VISIT_POINT(Less);
    SWIZZLE_VISIT_POINT(LessOrEqual);
    SWIZZLE_VISIT_POINT(And);
    SWIZZLE_VISIT_POINT(Or);
    case PointOp::kLeakyRelu:
      return visit([=]<std::floating_point T>(T x) { return LeakyRelu()(x, alpha); });
    case PointOp::kElu:
      return visit([=]<std::floating_point T>(T x) { return Elu()(x, alpha); });
    case PointOp::kHardSigmoid:
      return visit([=]<std::floating_point T>(T x) { return HardSigmoid()(x, alpha, beta); });
    case PointOp::kClip:
      return visit([=]<std::floating_point T>(T x) { return Clip()(x, T(alpha), T(beta)); });
    case PointOp::kWhere:
      return visit([]<typename T>(T condition, T x, T y) { return condition != 0 ? x : y; });
  }
}

#undef SWIZZLE_VISIT_POINT

// What `op` makes of InputsOf(op) numbers; of whole ones that it takes none of, the first.
template <typename T, int kInputs>
SWIZZLE_ON_DEVICES_TOO T PointOf(PointOp op, float alpha, float beta, const T (&x)[kInputs]) {
  T y = x[0];
  VisitPointOp(op, alpha, beta, [&](auto function) {
    if constexpr (kInputs == 1 && requires { function(x[0]); }) y = static_cast<T>(function(x[0]));
    if constexpr (kInputs == 2 && requires { function(x[0], x[1]); }) y = static_cast<T>(function(x[0], x[1]));
    if constexpr (kInputs == 3 && requires { function(x[0], x[1], x[2]); }) {
      y = static_cast<T>(function(x[0], x[1], x[2]));
    }
  });
  return y;
}

// An element of Pointwise's operands, and putting one there.
template <typename T>
SWIZZLE_ON_DEVICES_TOO T PointAt(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<T>(static_cast<const float*>(data)[i]);
    case DType::kInt64:
      return static_cast<T>(static_cast<const int64_t*>(data)[i]);
    case DType::kInt32:
      return static_cast<T>(static_cast<const int32_t*>(data)[i]);
    case DType::kBool:
    case DType::kUint8:
      return static_cast<T>(static_cast<const uint8_t*>(data)[i]);
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kString:
      break;
  }
  SWIZZLE_NOT_REACHED("no type of Pointwise");
}

template <typename T>
SWIZZLE_ON_DEVICES_TOO void PutPoint(T value, void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::kInt64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
      return;
    case DType::kInt32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      return;
    case DType::kBool:
      static_cast<uint8_t*>(data)[i] = value != 0 ? 1 : 0;
      return;
    case DType::kUint8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      return;
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kString:
      break;
  }
  SWIZZLE_NOT_REACHED("no type of Pointwise");
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_POINT_FUNCTIONS_H_
