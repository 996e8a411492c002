// Softmax and its kin.
#include "kernels/cpu/elementwise/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/rows.h"

namespace swizzle::interpreter {
namespace {

// result row = function(row, length, result), along one axis from opset 13 on, along all from that axis before.
template <typename Function>
StatusOr<Array> MapRows(Call& call, const Function& function) {
  const Array& in = call.In(0);
  if (!IsFloating(in.dtype)) return InvalidArgument("input 0 is ", DTypeName(in.dtype), "; it must be floating");
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SoftmaxAxes(call.node(), call.opset(), in.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, std::move(x), axes));
  SWIZZLE_ASSIGN_OR_RETURN(Array mapped, call.New(DType::kFloat32, rows.array.shape));
  const float* from = rows.array.As<float>().data();
  float* to = mapped.Mutable<float>().data();
  const int64_t length = rows.length;
  if (length > 0) {
    ForEachRow(call, rows, [&](int64_t row) { function(from + row * length, length, to + row * length); });
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, BackInOrder(call, rows, std::move(mapped)));
  return call.As(std::move(y), in.dtype);
}

}  // namespace

StatusOr<Array> Softmax(Call& call) { return MapRows(call, cpu::SoftmaxRow); }

StatusOr<Array> LogSoftmax(Call& call) {
  return MapRows(call, [](const float* x, int64_t length, float* y) {
    const float largest = *std::max_element(x, x + length);
    double sum = 0.0;
    for (int64_t i = 0; i < length; ++i) sum += std::exp(x[i] - largest);
    const auto shift = static_cast<float>(std::log(sum));
    for (int64_t i = 0; i < length; ++i) y[i] = x[i] - largest - shift;
  });
}

StatusOr<Array> Hardmax(Call& call) {
  return MapRows(call, [](const float* x, int64_t length, float* y) {
    std::fill_n(y, length, 0.0f);
    y[std::max_element(x, x + length) - x] = 1.0f;
  });
}

}  // namespace swizzle::interpreter
