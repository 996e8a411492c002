// Reductions, arguments of extremes, running sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "kernels/operator/element_functions.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/rows.h"
#include "model_loader/semantics/axes.h"

namespace swizzle::interpreter {
namespace {

// The shape after a reduction over `axes`.
Shape ReducedShape(const Shape& shape, const std::vector<int64_t>& axes, bool keep) {
  Shape reduced;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    if (!gone) reduced.push_back(shape[d]);
    if (gone && keep) reduced.push_back(1);
  }
  return reduced;
}

std::vector<int64_t> AllAxes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// result = function(row, length), over the axes that the node names: all where it names none.
template <typename Function>
StatusOr<Array> Reduce(Call& call, const Function& function) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, call.Axes(1, in.rank()));
  if (!axes || axes->empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t nothing, call.Int("noop_with_empty_axes", 0));
    axes = nothing != 0 ? std::vector<int64_t>() : AllAxes(in.rank());
  }
  const DType type = ComputeType(in.dtype);
  SWIZZLE_ASSIGN_OR_RETURN(Array x, call.As(in, type));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, std::move(x), *axes));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(type, ReducedShape(in.shape, *axes, keep)));
  VisitComputeType(type, [&]<typename T>(T) {
    const T* from = rows.array.As<T>().data();
    T* to = y.Mutable<T>().data();
    ForEachRow(call, rows, [&](int64_t row) { to[row] = function(from + row * rows.length, rows.length); });
  });
  return call.As(std::move(y), in.dtype);
}

// What sums are kept in: integers wrap, so that they are added as unsigned ones.
template <typename T>
using Total = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T, typename Function>
Total<T> TotalOf(const T* x, int64_t count, const Function& function) {
  Total<T> total = 0;
  for (int64_t i = 0; i < count; ++i) total += function(static_cast<Total<T>>(x[i]));
  return total;
}

// An integer's magnitude, where it is held as unsigned.
template <typename T>
Total<T> Magnitude(Total<T> x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<int64_t>(x) < 0 ? uint64_t{0} - x : x;
  else
    return x;
}

// Logarithms and roots of integers are taken in floating point.
template <typename T>
double AsReal(Total<T> total) {
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
    return static_cast<double>(static_cast<int64_t>(total));
  else
    return static_cast<double>(total);
}

template <typename T>
T LogSumExpOf(const T* x, int64_t count) {
  if (count == 0) return T(-std::numeric_limits<double>::infinity());
  const double largest = static_cast<double>(*std::max_element(x, x + count));
  if (std::isinf(largest)) return static_cast<T>(largest);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(x[i]) - largest);
  return static_cast<T>(largest + std::log(sum));
}

Status CheckFloating(const Call& call) {
  if (IsFloating(call.In(0).dtype)) return {};
  return Unimplemented("input 0 is ", DTypeName(call.In(0).dtype), "; only floating types are supported");
}

// Keeps what `better` says is better than all before it; the last of equals where the node wants that.
template <typename Better>
StatusOr<Array> ArgBest(Call& call, const Better& better) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, in.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t last, call.Int("select_last_index", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(in, ComputeType(in.dtype)));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, {axis}));
  if (rows.length == 0) return InvalidArgument("axis ", axis, " of input 0 is empty");
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kInt64, ReducedShape(x.shape, {axis}, keep)));
  VisitComputeType(x.dtype, [&]<typename T>(T) {
    ForEachRow(call, rows, [&](int64_t row) {
      const T* from = rows.array.As<T>().data() + row * rows.length;
      int64_t best = 0;
      for (int64_t i = 1; i < rows.length; ++i) {
        if (better(from[i], from[best]) || (last != 0 && from[i] == from[best])) best = i;
      }
      y.Mutable<int64_t>()[static_cast<size_t>(row)] = best;
    });
  });
  return y;
}

// What elements come to, one by one, by `add`, which begins with `total`.
template <typename T, typename Add>
void RunAlong(const T* from, int64_t length, bool exclusive, bool reverse, Total<T> total, const Add& add, T* to) {
  for (int64_t step = 0; step < length; ++step) {
    const int64_t i = reverse ? length - 1 - step : step;
    const Total<T> before = total;
    total = add(total, static_cast<Total<T>>(from[i]));
    to[i] = static_cast<T>(exclusive ? before : total);
  }
}

template <typename Add>
StatusOr<Array> Running(Call& call, int first, const Add& add) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t given, call.IntScalar(1, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(given, in.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t exclusive, call.Int("exclusive", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t reverse, call.Int("reverse", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(in, ComputeType(in.dtype)));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, {axis}));
  SWIZZLE_ASSIGN_OR_RETURN(Array totals, call.New(x.dtype, rows.array.shape));
  VisitComputeType(x.dtype, [&]<typename T>(T) {
    ForEachRow(call, rows, [&](int64_t row) {
      RunAlong<T>(rows.array.As<T>().data() + row * rows.length, rows.length, exclusive != 0, reverse != 0,
                  static_cast<Total<T>>(first), add, totals.Mutable<T>().data() + row * rows.length);
    });
  });
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, BackInOrder(call, rows, totals));
  return call.As(y, in.dtype);
}

}  // namespace

StatusOr<Array> ReduceSum(Call& call) {
  return Reduce(
      call, []<typename T>(const T* x, int64_t n) { return static_cast<T>(TotalOf(x, n, [](auto v) { return v; })); });
}

StatusOr<Array> ReduceMean(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) -> T {
    const Total<T> total = TotalOf(x, n, [](auto v) { return v; });
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(total / static_cast<double>(n));
    else
      return n == 0 ? T(0) : static_cast<T>(static_cast<T>(total) / static_cast<T>(n));
  });
}

StatusOr<Array> ReduceSumSquare(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    return static_cast<T>(TotalOf(x, n, [](auto v) { return v * v; }));
  });
}

StatusOr<Array> ReduceL1(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    return static_cast<T>(TotalOf(x, n, [](auto v) { return Magnitude<T>(v); }));
  });
}

StatusOr<Array> ReduceL2(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    return static_cast<T>(std::sqrt(AsReal<T>(TotalOf(x, n, [](auto v) { return v * v; }))));
  });
}

StatusOr<Array> ReduceLogSum(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloating(call));
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    return static_cast<T>(std::log(AsReal<T>(TotalOf(x, n, [](auto v) { return v; }))));
  });
}

StatusOr<Array> ReduceLogSumExp(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloating(call));
  return Reduce(call, []<typename T>(const T* x, int64_t n) { return LogSumExpOf(x, n); });
}

StatusOr<Array> ReduceProd(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    Total<T> product = 1;
    for (int64_t i = 0; i < n; ++i) product *= static_cast<Total<T>>(x[i]);
    return static_cast<T>(product);
  });
}

StatusOr<Array> ReduceMax(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    using Bounds = std::numeric_limits<T>;
    T best = Bounds::has_infinity ? -Bounds::infinity() : Bounds::lowest();
    for (int64_t i = 0; i < n; ++i) best = elementwise::kMax(x[i], best);
    return best;
  });
}

StatusOr<Array> ReduceMin(Call& call) {
  return Reduce(call, []<typename T>(const T* x, int64_t n) {
    using Bounds = std::numeric_limits<T>;
    T best = Bounds::has_infinity ? Bounds::infinity() : Bounds::max();
    for (int64_t i = 0; i < n; ++i) best = elementwise::kMin(x[i], best);
    return best;
  });
}

StatusOr<Array> ArgMax(Call& call) {
  return ArgBest(call, [](auto x, auto best) { return x > best; });
}

StatusOr<Array> ArgMin(Call& call) {
  return ArgBest(call, [](auto x, auto best) { return x < best; });
}

StatusOr<Array> CumSum(Call& call) {
  return Running(call, 0, [](auto total, auto x) { return total + x; });
}

StatusOr<Array> CumProd(Call& call) {
  return Running(call, 1, [](auto total, auto x) { return total * x; });
}

// The k best of each row, best first or as they stood.
StatusOr<Results> TopK(Call& call) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-1, in.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t largest, call.Int("largest", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t sorted, call.Int("sorted", 1));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t k, call.Int("k", 0));
  SWIZZLE_ASSIGN_OR_RETURN(k, call.IntScalar(1, k));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(in, ComputeType(in.dtype)));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, {axis}));
  if (k < 0 || k > rows.length) return InvalidArgument("k is ", k, ", but axis ", axis, " has ", rows.length);
  Shape shape = rows.array.shape;
  shape.back() = k;
  SWIZZLE_ASSIGN_OR_RETURN(Array values, call.New(x.dtype, shape));
  SWIZZLE_ASSIGN_OR_RETURN(Array indices, call.New(DType::kInt64, shape));
  VisitComputeType(x.dtype, [&]<typename T>(T) {
    ForEachRow(call, rows, [&](int64_t row) {
      const T* from = rows.array.As<T>().data() + row * rows.length;
      std::vector<int64_t> order(static_cast<size_t>(rows.length));
      std::iota(order.begin(), order.end(), 0);
      // What is not a number counts as larger than all, so that this is an order.
      const auto before = [&](int64_t i, int64_t j) {
        const bool i_nan = elementwise::kIsNaN(from[i]), j_nan = elementwise::kIsNaN(from[j]);
        if (i_nan || j_nan) return i_nan == j_nan ? i < j : i_nan == (largest != 0);
        if (from[i] == from[j]) return i < j;
        return largest != 0 ? from[i] > from[j] : from[i] < from[j];
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      if (sorted == 0) std::sort(order.begin(), order.begin() + k);
      for (int64_t i = 0; i < k; ++i) {
        values.Mutable<T>()[static_cast<size_t>(row * k + i)] = from[order[static_cast<size_t>(i)]];
        indices.Mutable<int64_t>()[static_cast<size_t>(row * k + i)] = order[static_cast<size_t>(i)];
      }
    });
  });
  SWIZZLE_ASSIGN_OR_RETURN(values, BackInOrder(call, rows, values));
  SWIZZLE_ASSIGN_OR_RETURN(values, call.As(values, in.dtype));
  SWIZZLE_ASSIGN_OR_RETURN(indices, BackInOrder(call, rows, indices));
  return Results{values, indices};
}

}  // namespace swizzle::interpreter
