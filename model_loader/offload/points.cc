// Operators on each element, of inputs that broadcast.
#include <algorithm>
#include <limits>

#include "model_loader/interpreter/values/strided.h"
#include "model_loader/offload/operators.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/functions.h"

namespace swizzle::offload {

using interpreter::Array;
using interpreter::Call;

namespace {

bool IsWhole(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool || dtype == DType::kUint8;
}

// kInputs strided inputs over the dimensions of a dense result, joined where all allow it.
template <size_t kInputs>
Status FillStrides(const Shape& shape, std::span<const Array> inputs, Pointwise& map) {
  std::array<Shape, kInputs + 1> strides;
  for (size_t i = 0; i < kInputs; ++i) strides[i] = BroadcastStrides(inputs[i].shape, shape);
  strides[kInputs] = DenseStrides(shape);
  const interpreter::StridedLoop<kInputs + 1> loop(shape, strides);
  if (loop.dims().size() > kMaxStridedRank) return Unimplemented("it has too many dimensions for a device");
  map.rank = static_cast<int>(loop.dims().size());
  std::ranges::copy(loop.dims(), map.dims.begin());
  for (size_t i = 0; i < kInputs; ++i) {
    map.inputs[i].data = inputs[i].data.get();
    map.inputs[i].dtype = inputs[i].dtype;
    std::ranges::copy(loop.strides(i), map.inputs[i].strides.begin());
  }
  return {};
}

StatusOr<Array> Mapped(Call& call, Pointwise map, std::span<const Array> inputs, DType made) {
  if (call.opset() < 7) return Unimplemented("a device broadcasts as opset 7 does");
  std::vector<Shape> shapes;
  for (const Array& input : inputs) shapes.push_back(input.shape);
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(shapes));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(made, shape));
  if (result.elements() == 0) return result;
  if (inputs.size() == 1) {
    SWIZZLE_RETURN_IF_ERROR(FillStrides<1>(shape, inputs, map));
  } else if (inputs.size() == 2) {
    SWIZZLE_RETURN_IF_ERROR(FillStrides<2>(shape, inputs, map));
  } else {
    SWIZZLE_RETURN_IF_ERROR(FillStrides<3>(shape, inputs, map));
  }
  map.output = result.data.get();
  map.output_dtype = made;
  call.device()->functions().Map(map, call.stream());
  return result;
}

// Which the functions of whole numbers are among those of one.
constexpr bool TakesWholes(PointOp op) { return op <= PointOp::kNot || InputsOf(op) > 1; }

}  // namespace

StatusOr<Array> Pointed(Call& call, PointOp op, std::span<const Array> inputs, float alpha, float beta) {
  const DType dtype = inputs.back().dtype;
  for (const Array& input : inputs.subspan(op == PointOp::kWhere ? 1 : 0)) {
    if (input.dtype != dtype) return InvalidArgument("its inputs have different types");
  }
  const bool integers = IsWhole(dtype);
  if (dtype != DType::kFloat32 && !(integers && TakesWholes(op) && op != PointOp::kPow)) {
    return Unimplemented("a device does not compute it in ", DTypeName(dtype));
  }
  Pointwise map{.op = op, .integers = integers, .alpha = alpha, .beta = beta};
  return Mapped(call, map, inputs, IsTest(op) ? DType::kBool : dtype);
}

template <PointOp kOp>
StatusOr<Array> Unary(Call& call) {
  float alpha = 0.0f, beta = 0.0f;
  if constexpr (kOp == PointOp::kLeakyRelu || kOp == PointOp::kElu || kOp == PointOp::kHardSigmoid) {
    constexpr float kAbsent = kOp == PointOp::kLeakyRelu ? 0.01f : kOp == PointOp::kElu ? 1.0f : 0.2f;
    SWIZZLE_ASSIGN_OR_RETURN(alpha, call.Float("alpha", kAbsent));
    SWIZZLE_ASSIGN_OR_RETURN(beta, call.Float("beta", 0.5f));
  }
  return Pointed(call, kOp, std::span(&call.In(0), 1), alpha, beta);
}

template <PointOp kOp>
StatusOr<Array> Binary(Call& call) {
  const Array inputs[] = {call.In(0), call.In(1)};
  return Pointed(call, kOp, inputs);
}

template <PointOp kOp>
StatusOr<Array> Joined(Call& call) {
  Array total = call.In(0);
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    const Array inputs[] = {total, call.In(i)};
    SWIZZLE_ASSIGN_OR_RETURN(total, Pointed(call, kOp, inputs));
  }
  return total;
}

StatusOr<Array> Cast(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const DType type, CastType(call.node()));
  const Array& x = call.In(0);
  if (x.dtype == type) return x;
  const bool known = (x.dtype == DType::kFloat32 || IsWhole(x.dtype)) && (type == DType::kFloat32 || IsWhole(type));
  // What floats out of range become is left to the interpreter.
  if (!known || (x.dtype == DType::kFloat32 && type == DType::kUint8)) {
    return Unimplemented("a device does not convert ", DTypeName(x.dtype), " to ", DTypeName(type));
  }
  return Mapped(call, {.op = PointOp::kCopy, .integers = x.dtype != DType::kFloat32}, std::span(&x, 1), type);
}

StatusOr<Array> Clip(Call& call) {
  if (call.In(0).dtype != DType::kFloat32) return Unimplemented("a device clips FP32 alone");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (call.opset() < 11) {
    SWIZZLE_ASSIGN_OR_RETURN(const float low, call.Float("min", -kInfinity));
    SWIZZLE_ASSIGN_OR_RETURN(const float high, call.Float("max", kInfinity));
    return Pointed(call, PointOp::kClip, std::span(&call.In(0), 1), low, high);
  }
  float bounds[] = {-kInfinity, kInfinity};
  for (size_t i = 1; i < 3; ++i) {
    if (!call.Has(i)) continue;
    if (call.In(i).dtype != DType::kFloat32 || call.In(i).elements() != 1)
      return InvalidArgument("a bound is no number");
    bounds[i - 1] = call.In(i).As<float>()[0];
  }
  return Pointed(call, PointOp::kClip, std::span(&call.In(0), 1), bounds[0], bounds[1]);
}

StatusOr<Array> Gelu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const FunctionKind kind, GeluKindOf(call.node()));
  const PointOp op = kind == FunctionKind::kGelu ? PointOp::kGelu : PointOp::kGeluTanh;
  return Pointed(call, op, std::span(&call.In(0), 1));
}

StatusOr<Array> HardSwish(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array factor,
                           Pointed(call, PointOp::kHardSigmoid, std::span(&call.In(0), 1), 1.0f / 6, 0.5f));
  const Array inputs[] = {call.In(0), factor};
  return Pointed(call, PointOp::kMul, inputs);
}

StatusOr<Array> Pow(Call& call) { return Binary<PointOp::kPow>(call); }

StatusOr<Array> Where(Call& call) {
  if (call.In(0).dtype != DType::kBool) return InvalidArgument("the condition must be BOOL");
  const Array inputs[] = {call.In(0), call.In(1), call.In(2)};
  return Pointed(call, PointOp::kWhere, inputs);
}

template StatusOr<Array> Unary<PointOp::kAbs>(Call&);
template StatusOr<Array> Unary<PointOp::kCeil>(Call&);
template StatusOr<Array> Unary<PointOp::kCos>(Call&);
template StatusOr<Array> Unary<PointOp::kElu>(Call&);
template StatusOr<Array> Unary<PointOp::kErf>(Call&);
template StatusOr<Array> Unary<PointOp::kExp>(Call&);
template StatusOr<Array> Unary<PointOp::kFloor>(Call&);
template StatusOr<Array> Unary<PointOp::kHardSigmoid>(Call&);
template StatusOr<Array> Unary<PointOp::kLeakyRelu>(Call&);
template StatusOr<Array> Unary<PointOp::kLog>(Call&);
template StatusOr<Array> Unary<PointOp::kNeg>(Call&);
template StatusOr<Array> Unary<PointOp::kNot>(Call&);
template StatusOr<Array> Unary<PointOp::kReciprocal>(Call&);
template StatusOr<Array> Unary<PointOp::kRelu>(Call&);
template StatusOr<Array> Unary<PointOp::kSigmoid>(Call&);
template StatusOr<Array> Unary<PointOp::kSin>(Call&);
template StatusOr<Array> Unary<PointOp::kSoftplus>(Call&);
template StatusOr<Array> Unary<PointOp::kSqrt>(Call&);
template StatusOr<Array> Unary<PointOp::kTanh>(Call&);
template StatusOr<Array> Binary<PointOp::kAdd>(Call&);
template StatusOr<Array> Binary<PointOp::kAnd>(Call&);
template StatusOr<Array> Binary<PointOp::kDiv>(Call&);
template StatusOr<Array> Binary<PointOp::kEqual>(Call&);
template StatusOr<Array> Binary<PointOp::kGreater>(Call&);
template StatusOr<Array> Binary<PointOp::kGreaterOrEqual>(Call&);
template StatusOr<Array> Binary<PointOp::kLess>(Call&);
template StatusOr<Array> Binary<PointOp::kLessOrEqual>(Call&);
template StatusOr<Array> Binary<PointOp::kMul>(Call&);
template StatusOr<Array> Binary<PointOp::kOr>(Call&);
template StatusOr<Array> Binary<PointOp::kPRelu>(Call&);
template StatusOr<Array> Binary<PointOp::kSub>(Call&);
template StatusOr<Array> Joined<PointOp::kAdd>(Call&);
template StatusOr<Array> Joined<PointOp::kMax>(Call&);
template StatusOr<Array> Joined<PointOp::kMin>(Call&);

}  // namespace swizzle::offload
