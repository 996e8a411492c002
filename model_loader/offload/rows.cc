// Operators along some dimensions of their input, which are put last: reductions, softmax, sums, indices.
#include "model_loader/interpreter/values/rows.h"

#include <algorithm>
#include <numeric>

#include "model_loader/offload/operators.h"
#include "model_loader/semantics/axes.h"

namespace swizzle::offload {

using interpreter::Array;
using interpreter::Call;
using interpreter::Rows;

namespace {

Status CheckFloats(const Array& array) {
  if (array.dtype == DType::kFloat32) return {};
  return Unimplemented("a device does not compute it in ", DTypeName(array.dtype));
}

}  // namespace

template <RowReduction kReduction>
StatusOr<Array> Reduce(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(x));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> axes, call.Axes(1, x.rank()));
  if (!axes || axes->empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t nothing, call.Int("noop_with_empty_axes", 0));
    if (nothing != 0) return Unimplemented("a device does not reduce nothing");
    axes.emplace(static_cast<size_t>(x.rank()));
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (x.elements() == 0) return Unimplemented("a device does not reduce nothing");
  Shape shape;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const bool gone = std::ranges::binary_search(*axes, d);
    if (!gone || keep) shape.push_back(gone ? 1 : x.shape[static_cast<size_t>(d)]);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, *axes));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, std::move(shape)));
  call.device()->functions().Reduce({.reduction = kReduction,
                                     .rows = rows.count,
                                     .length = rows.length,
                                     .from = FloatsOf(rows.array),
                                     .to = MutableFloats(y)},
                                    call.stream());
  return y;
}

StatusOr<Array> ReduceL2(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array squares, Reduce<RowReduction::kSumSquare>(call));
  return Pointed(call, PointOp::kSqrt, std::span(&squares, 1));
}

template <RowReduction kReduction>
StatusOr<Array> ReducePlanes(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(x));
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(x, 3));
  if (x.elements() == 0) return Unimplemented("a device does not reduce nothing");
  Shape shape(x.shape.size(), 1);
  std::copy_n(x.shape.begin(), 2, shape.begin());
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, shape));
  call.device()->functions().Reduce({.reduction = kReduction,
                                     .rows = x.shape[0] * x.shape[1],
                                     .length = ProductOf(x.shape, 2, x.rank()),
                                     .from = FloatsOf(x),
                                     .to = MutableFloats(y)},
                                    call.stream());
  return y;
}

StatusOr<Array> Softmax(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(x));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SoftmaxAxes(call.node(), call.opset(), x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, axes));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, rows.array.shape));
  call.device()->functions().Softmax(
      {.inner = rows.count, .length = rows.length, .from = FloatsOf(rows.array), .to = MutableFloats(y)},
      call.stream());
  return BackInOrder(call, rows, y);
}

StatusOr<Array> LayerNormalization(Call& call) {
  const Array& x = call.In(0);
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.Has(i)) SWIZZLE_RETURN_IF_ERROR(CheckFloats(call.In(i)));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-1, x.rank()));
  const Shape tail(x.shape.begin() + axis, x.shape.end());
  for (size_t i = 1; i < 3; ++i) {
    if (call.Has(i) && call.In(i).shape != tail) return Unimplemented("a device does not broadcast its scales");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  call.device()->functions().Normalise({.rows = ProductOf(x.shape, 0, axis),
                                        .length = ProductOf(x.shape, axis, x.rank()),
                                        .epsilon = epsilon,
                                        .from = FloatsOf(x),
                                        .scale = call.Has(1) ? FloatsOf(call.In(1)) : nullptr,
                                        .shift = call.Has(2) ? FloatsOf(call.In(2)) : nullptr,
                                        .to = MutableFloats(y)},
                                       call.stream());
  return y;
}

StatusOr<Array> CumSum(Call& call) {
  const Array& x = call.In(0);
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kInt64) {
    return Unimplemented("a device does not sum ", DTypeName(x.dtype));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t given, call.IntScalar(1, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(given, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t exclusive, call.Int("exclusive", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t reverse, call.Int("reverse", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, {axis}));
  SWIZZLE_ASSIGN_OR_RETURN(Array sums, call.New(x.dtype, rows.array.shape));
  call.device()->functions().Sum(RowsSummed{.dtype = x.dtype,
                                            .rows = rows.count,
                                            .length = rows.length,
                                            .exclusive = exclusive != 0,
                                            .reverse = reverse != 0,
                                            .from = rows.array.data.get(),
                                            .to = sums.data.get()},
                                 call.stream());
  return BackInOrder(call, rows, sums);
}

StatusOr<Array> Gather(Call& call) {
  const Array& data = call.In(0);
  const Array& indices = call.In(1);
  if (indices.dtype != DType::kInt64 && indices.dtype != DType::kInt32) {
    return InvalidArgument("the indices are ", DTypeName(indices.dtype), "; they must be INT64 or INT32");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, data.rank()));
  const int64_t size = data.shape[static_cast<size_t>(axis)];
  if (size == 0) return Unimplemented("a device does not pick of nothing");
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(data.dtype, std::move(shape)));
  if (result.elements() == 0) return result;
  const int64_t piece = ProductOf(data.shape, axis + 1, data.rank());
  interpreter::Device& device = *call.device();
  device.functions().Pick({.outer = ProductOf(data.shape, 0, axis),
                           .size = size,
                           .count = indices.elements(),
                           .piece_bytes = piece * static_cast<int64_t>(ElementBytes(data.dtype)),
                           .index_dtype = indices.dtype,
                           .from = data.data.get(),
                           .indices = indices.data.get(),
                           .to = result.data.get(),
                           .bad = device.bad_index(),
                           .mark = device.bad_index_mark()},
                          call.stream());
  return result;
}

template StatusOr<Array> Reduce<RowReduction::kMax>(Call&);
template StatusOr<Array> Reduce<RowReduction::kMean>(Call&);
template StatusOr<Array> Reduce<RowReduction::kMin>(Call&);
template StatusOr<Array> Reduce<RowReduction::kSum>(Call&);
template StatusOr<Array> Reduce<RowReduction::kSumSquare>(Call&);
template StatusOr<Array> ReducePlanes<RowReduction::kMax>(Call&);
template StatusOr<Array> ReducePlanes<RowReduction::kMean>(Call&);

}  // namespace swizzle::offload
