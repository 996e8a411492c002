// Operators of com.microsoft on whole numbers: one on real numbers, between DequantizeLinear and QuantizeLinear.
#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

constexpr int64_t kOpset = 13;  // of the operators on real numbers

using RealOperator = StatusOr<Array> (*)(Call&);

StatusOr<Array> RunOn(Call& call, RealOperator run, std::span<const Array> inputs, int64_t opset = kOpset) {
  Call inner(call.node(), opset, inputs, call.memory(), call.stream());
  return run(inner);
}

// One number or zero point, which an axis would not change.
Status CheckScalar(Call& call, size_t i) {
  if (!call.Has(i) || call.In(i).elements() == 1) return {};
  return Unimplemented("input ", i, " has shape ", ShapeText(call.In(i).shape), "; only one scale is supported");
}

// Inputs [i, i + 3): whole numbers, their scale and their zero point.
StatusOr<Array> RealInput(Call& call, size_t i) {
  for (size_t given = i; given < i + 2; ++given) {
    if (!call.Has(given)) return InvalidArgument("input ", given, " is left out");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckScalar(call, i + 1));
  SWIZZLE_RETURN_IF_ERROR(CheckScalar(call, i + 2));
  const Array operands[] = {call.In(i), call.In(i + 1), call.Has(i + 2) ? call.In(i + 2) : Array()};
  return RunOn(call, DequantizeLinear, operands);
}

// By inputs [i, i + 2): a scale and a zero point.
StatusOr<Array> WholeResult(Call& call, const Array& real, size_t i) {
  if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
  SWIZZLE_RETURN_IF_ERROR(CheckScalar(call, i));
  SWIZZLE_RETURN_IF_ERROR(CheckScalar(call, i + 1));
  const Array operands[] = {real, call.In(i), call.Has(i + 1) ? call.In(i + 1) : Array()};
  return RunOn(call, QuantizeLinear, operands);
}

StatusOr<Array> Unary(Call& call, RealOperator run, int64_t opset = kOpset) {
  constexpr size_t kX = 0, kY = 3;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t channels_last, call.Int("channels_last", 0));
  if (channels_last != 0) return Unimplemented("channels_last is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, RealInput(call, kX));
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, RunOn(call, run, std::span(&x, 1), opset));
  return WholeResult(call, y, kY);
}

StatusOr<Array> Binary(Call& call, RealOperator run) {
  constexpr size_t kA = 0, kB = 3, kC = 6;
  SWIZZLE_ASSIGN_OR_RETURN(const Array a, RealInput(call, kA));
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, RealInput(call, kB));
  const Array operands[] = {a, b};
  SWIZZLE_ASSIGN_OR_RETURN(const Array c, RunOn(call, run, operands));
  return WholeResult(call, c, kC);
}

}  // namespace

StatusOr<Array> QLinearAdd(Call& call) { return Binary(call, Add); }
StatusOr<Array> QLinearMul(Call& call) { return Binary(call, Mul); }
StatusOr<Array> QLinearSigmoid(Call& call) { return Unary(call, Sigmoid); }
StatusOr<Array> QLinearLeakyRelu(Call& call) { return Unary(call, LeakyRelu); }
StatusOr<Array> QLinearAveragePool(Call& call) { return Unary(call, AveragePool); }
StatusOr<Array> QLinearGlobalAveragePool(Call& call) { return Unary(call, GlobalAveragePool); }

StatusOr<Array> QLinearSoftmax(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t opset, call.Int("opset", kOpset));
  return Unary(call, Softmax, opset);
}

StatusOr<Array> QLinearConcat(Call& call) {
  constexpr size_t kY = 0, kFirst = 2;
  std::vector<Array> parts;
  for (size_t i = kFirst; i < call.input_count(); i += 3) {
    SWIZZLE_ASSIGN_OR_RETURN(parts.emplace_back(), RealInput(call, i));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, RunOn(call, ConcatArrays, parts));
  return WholeResult(call, y, kY);
}

}  // namespace swizzle::interpreter
