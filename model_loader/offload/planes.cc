// Convolutions, pools and products that no plan took: windows go by the interpreter's table of taps
// (interpreter/operators/windows/window.h).
#include <algorithm>
#include <vector>

#include "model_loader/interpreter/operators/windows/window.h"
#include "model_loader/offload/operators.h"

namespace swizzle::offload {

using interpreter::Array;
using interpreter::Call;
using interpreter::Window;

namespace {

Status CheckFloats(const Call& call) {
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.Has(i) && call.In(i).dtype != DType::kFloat32) return Unimplemented("a device computes it in FP32 alone");
    if (call.Has(i) && call.In(i).elements() == 0) return Unimplemented("a device does not compute it of nothing");
  }
  return {};
}

StatusOr<int64_t> GroupsOf(const Call& call, int64_t channels, int64_t others) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, call.Int("group", 1));
  if (groups >= 1 && channels % groups == 0 && others % groups == 0) return groups;
  return InvalidArgument(groups, " groups do not fit ", channels, " channels");
}

// y, of [N, M, ...], plus a number for each of M, where the node has such.
StatusOr<Array> WithBias(Call& call, const Array& y) {
  if (!call.Has(2)) return y;
  if (call.In(2).shape != Shape{y.shape[1]}) {
    return InvalidArgument("the bias has shape ", ShapeText(call.In(2).shape), "; it must be [", y.shape[1], "]");
  }
  Shape shape(y.shape.size(), 1);
  shape[1] = y.shape[1];
  const Array inputs[] = {y, call.In(2).WithShape(std::move(shape))};
  return Pointed(call, PointOp::kAdd, inputs);
}

Shape PlanesOf(int64_t images, int64_t channels, const Shape& spatial) {
  Shape shape = {images, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

StatusOr<Array> UploadedTaps(Call& call, const Window& window) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array taps, interpreter::Taps(call, window));
  return call.Placed(taps);
}

// Which of [taps, positions] make each place of the window's input: lists one after the other, and where they begin.
struct Lists {
  Array offsets, entries;
};
StatusOr<Lists> ListsOf(Call& call, const Window& window) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array taps, interpreter::Taps(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array offsets, call.NewTable(DType::kInt32, {window.plane() + 1}));
  SWIZZLE_ASSIGN_OR_RETURN(Array entries, call.NewTable(DType::kInt32, {taps.elements()}));
  const auto places = taps.As<int32_t>();
  const auto begins = offsets.Mutable<int32_t>(), list = entries.Mutable<int32_t>();
  std::ranges::fill(begins, 0);
  for (const int32_t place : places) {
    if (place >= 0) ++begins[static_cast<size_t>(place) + 1];
  }
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<int32_t> next(begins.begin(), begins.end() - 1);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) list[static_cast<size_t>(next[static_cast<size_t>(places[i])]++)] = static_cast<int32_t>(i);
  }
  SWIZZLE_ASSIGN_OR_RETURN(offsets, call.Placed(offsets));
  SWIZZLE_ASSIGN_OR_RETURN(entries, call.Placed(entries));
  return Lists{std::move(offsets), std::move(entries)};
}

}  // namespace

StatusOr<Array> Gemm(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(call));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, call.Float("beta", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t turn_a, call.Int("transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t turn_b, call.Int("transB", 0));
  if (alpha != 1.0f || beta != 1.0f) return Unimplemented("a device does not scale products");
  const Array& a = call.In(0);
  const Array& b = call.In(1);
  if (a.rank() != 2 || b.rank() != 2) return InvalidArgument("inputs 0 and 1 must be matrices");
  const int64_t m = a.shape[turn_a != 0], k = a.shape[turn_a == 0], n = b.shape[turn_b == 0];
  if (b.shape[turn_b != 0] != k) {
    return InvalidArgument("matrices of shapes ", ShapeText(a.shape), " and ", ShapeText(b.shape), " have no product");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, {m, n}));
  const auto matrix = [](const Array& array, bool turned) {
    const int64_t pitch = array.shape[1];
    return StackedMatrix{FloatsOf(array), turned ? 1 : pitch, turned ? pitch : 1, 0};
  };
  call.device()->functions().Multiply({.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = matrix(a, turn_a != 0),
                                       .b = matrix(b, turn_b != 0),
                                       .to = MutableFloats(y),
                                       .to_row_stride = n},
                                      call.stream());
  if (!call.Has(2)) return y;
  const Array inputs[] = {y, call.In(2)};
  SWIZZLE_ASSIGN_OR_RETURN(Array sum, Pointed(call, PointOp::kAdd, inputs));
  if (sum.shape != y.shape) return InvalidArgument("input 2 does not broadcast to the product");
  return sum;
}

StatusOr<Array> Conv(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(call));
  const Array& x = call.In(0);
  const Array& w = call.In(1);
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(x, 3));
  if (w.rank() != x.rank()) return InvalidArgument("the weight has shape ", ShapeText(w.shape));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, GroupsOf(call, x.shape[1], w.shape[0]));
  const int64_t images = x.shape[0], channels = x.shape[1] / groups, rows = w.shape[0] / groups;
  if (w.shape[1] != channels) return InvalidArgument("a weight of shape ", ShapeText(w.shape), " does not fit");
  SWIZZLE_ASSIGN_OR_RETURN(const Window window,
                           interpreter::ReadWindow(call, x.shape, Shape(w.shape.begin() + 2, w.shape.end())));
  const int64_t taps = window.taps(), positions = window.positions();
  const DeviceFunctions& functions = call.device()->functions();
  Array columns = x;
  if (!window.IsPointwise()) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array sources, UploadedTaps(call, window));
    SWIZZLE_ASSIGN_OR_RETURN(columns, call.New(DType::kFloat32, {images, x.shape[1], taps, positions}));
    functions.Gather({.planes = images * x.shape[1],
                      .plane = window.plane(),
                      .taps = taps,
                      .positions = positions,
                      .sources = reinterpret_cast<const int32_t*>(sources.data.get()),
                      .from = FloatsOf(x),
                      .to = MutableFloats(columns)},
                     call.stream());
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, PlanesOf(images, w.shape[0], window.output)));
  const int64_t depth = channels * taps;
  for (int64_t image = 0; image < images; ++image) {
    functions.Multiply({.m = rows,
                        .n = positions,
                        .k = depth,
                        .batch = groups,
                        .a = {FloatsOf(w), depth, 1, rows * depth},
                        .b = {FloatsOf(columns) + image * groups * depth * positions, positions, 1, depth * positions},
                        .to = MutableFloats(y) + image * groups * rows * positions,
                        .to_row_stride = positions,
                        .to_batch_stride = rows * positions},
                       call.stream());
  }
  return WithBias(call, y);
}

StatusOr<Array> ConvTranspose(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(call));
  const Array& x = call.In(0);
  const Array& w = call.In(1);
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(x, 3));
  if (w.rank() != x.rank() || w.shape[0] != x.shape[1]) {
    return InvalidArgument("a weight of shape ", ShapeText(w.shape), " does not fit");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, GroupsOf(call, x.shape[1], w.shape[0]));
  SWIZZLE_ASSIGN_OR_RETURN(const Window window,
                           interpreter::ReadTransposedWindow(call, x.shape, Shape(w.shape.begin() + 2, w.shape.end())));
  const int64_t images = x.shape[0], channels = x.shape[1] / groups, rows = w.shape[1];
  const int64_t positions = window.positions(), height = rows * window.taps();
  SWIZZLE_ASSIGN_OR_RETURN(const Lists lists, ListsOf(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array columns, call.New(DType::kFloat32, {images, groups, height, positions}));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, PlanesOf(images, groups * rows, window.input)));
  const DeviceFunctions& functions = call.device()->functions();
  for (int64_t image = 0; image < images; ++image) {
    functions.Multiply({.m = height,
                        .n = positions,
                        .k = channels,
                        .batch = groups,
                        .a = {FloatsOf(w), 1, height, channels * height},
                        .b = {FloatsOf(x) + image * groups * channels * positions, positions, 1, channels * positions},
                        .to = MutableFloats(columns) + image * groups * height * positions,
                        .to_row_stride = positions,
                        .to_batch_stride = height * positions},
                       call.stream());
  }
  functions.Sum(ColumnsSummed{.planes = images * groups * rows,
                              .plane = window.plane(),
                              .columns = window.taps() * positions,
                              .offsets = reinterpret_cast<const int32_t*>(lists.offsets.data.get()),
                              .entries = reinterpret_cast<const int32_t*>(lists.entries.data.get()),
                              .from = FloatsOf(columns),
                              .to = MutableFloats(y)},
                call.stream());
  return WithBias(call, y);
}

StatusOr<Array> MaxPool(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckFloats(call));
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(x, 3));
  SWIZZLE_ASSIGN_OR_RETURN(const Window window, interpreter::ReadWindow(call, x.shape, {}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array sources, UploadedTaps(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, PlanesOf(x.shape[0], x.shape[1], window.output)));
  call.device()->functions().Pool({.planes = x.shape[0] * x.shape[1],
                                   .plane = window.plane(),
                                   .taps = window.taps(),
                                   .positions = window.positions(),
                                   .sources = reinterpret_cast<const int32_t*>(sources.data.get()),
                                   .from = FloatsOf(x),
                                   .to = MutableFloats(y)},
                                  call.stream());
  return y;
}

}  // namespace swizzle::offload
