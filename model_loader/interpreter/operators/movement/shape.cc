// Operators that say something of a shape, or give elements another one.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/box_copy.h"
#include "model_loader/interpreter/values/little_window.h"
#include "model_loader/interpreter/values/rows.h"
#include "model_loader/interpreter/values/settle.h"
#include "model_loader/interpreter/values/strided.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle::interpreter {
namespace {

StatusOr<Array> IntList(Call& call, const std::vector<int64_t>& values) {
  SWIZZLE_ASSIGN_OR_RETURN(Array list, call.New(DType::kInt64, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), list.Mutable<int64_t>().begin());
  return list;
}

// None of what follows needs a made array.
StatusOr<Array> Reshaped(Call& call, const Array& array, Shape shape) {
  if (shape.size() > kMaxRank) return InvalidArgument("a value would have ", shape.size(), " dimensions");
  const StatusOr<int64_t> elements = ElementCount(shape);
  if (!elements.ok() || *elements != array.elements()) {
    return InvalidArgument("a value of shape ", ShapeText(array.shape), " cannot become ", ShapeText(shape));
  }
  if (array.moved == nullptr) return array.WithShape(std::move(shape));
  const Shape to = shape;
  return MovedBy(call, array, std::move(shape), [&](Moved moved) { return ReshapedMoved(std::move(moved), to); });
}

StatusOr<Array> Permuted(Call& call, const Array& array, const std::vector<int64_t>& order) {
  Shape shape;
  for (const int64_t axis : order) shape.push_back(array.shape[static_cast<size_t>(axis)]);
  if (array.elements() == 0) return call.New(array.dtype, std::move(shape));
  if (IsLittle(call, array, shape)) return Transposed(call, array, order);
  return MovedBy(call, array, std::move(shape),
                 [&](const Moved& moved) { return std::optional(TransposedMoved(moved, order)); });
}

// A range of each dimension.
StatusOr<Array> Window(Call& call, const Array& array, const std::vector<SliceRange>& ranges) {
  Shape shape;
  shape.reserve(ranges.size());
  for (const SliceRange& range : ranges) shape.push_back(range.count);
  if (std::ranges::find(shape, 0) != shape.end()) return call.New(array.dtype, std::move(shape));
  if (IsLittle(call, array, shape)) return LittleWindow(call, array, ranges, std::move(shape));
  return MovedBy(call, array, std::move(shape), [&](Moved moved) { return SlicedMoved(std::move(moved), ranges); });
}

// The inputs one after another along an axis, which makes this shape, and is made.
StatusOr<Array> CopiedTogether(Call& call, size_t axis, const Shape& shape) {
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(call.In(0).dtype, shape));
  const Shape dense = DenseStrides(shape);
  const auto element = static_cast<int64_t>(ElementBytes(result.dtype));
  std::vector<Array> parts;
  std::vector<BoxCopy> copies;
  std::byte* to = result.data.get();
  for (size_t i = 0; i < call.input_count(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array part, Settled(call.In(i), call.memory(), call.stream(), call.device()));
    parts.push_back(part);
    copies.push_back({part.shape, DenseStrides(part.shape), dense, part.data.get(), to});
    to += part.shape[axis] * dense[axis] * element;
  }
  SWIZZLE_RETURN_IF_ERROR(Copy(call, static_cast<size_t>(element), copies));
  return result;
}

// Little inputs on the host one after another along an axis, which makes this shape, and is made.
StatusOr<Array> RowsTogether(Call& call, size_t axis, const Shape& shape) {
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(call.In(0).dtype, shape));
  const auto first = static_cast<int64_t>(axis);
  const int64_t rows = ProductOf(shape, 0, first);
  const auto row_bytes = [&](const Array& array) {
    return ProductOf(array.shape, first, array.rank()) * static_cast<int64_t>(ElementBytes(array.dtype));
  };
  std::byte* to = result.data.get();
  for (size_t i = 0; i < call.input_count(); ++i) {
    Array made;
    if (call.In(i).moved != nullptr) {
      SWIZZLE_ASSIGN_OR_RETURN(made, Settled(call.In(i), call.memory(), call.stream(), nullptr));
    }
    const Array& part = call.In(i).moved == nullptr ? call.In(i) : made;
    const int64_t bytes = row_bytes(part), pitch = row_bytes(result);
    if (bytes == 0) continue;
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + row * pitch, part.data.get() + row * bytes, static_cast<size_t>(bytes));
    }
    to += bytes;
  }
  return result;
}

// The inputs one after another along an axis, which makes this shape.
StatusOr<Array> Joined(Call& call, size_t axis, const Shape& shape) {
  SWIZZLE_RETURN_IF_ERROR(call.memory().Check(call.In(0).dtype, shape));
  if (std::ranges::find(shape, 0) != shape.end()) return call.New(call.In(0).dtype, shape);
  const int64_t bytes = ProductOf(shape, 0, std::ssize(shape)) * static_cast<int64_t>(ElementBytes(call.In(0).dtype));
  const auto inputs = static_cast<int64_t>(call.input_count());
  if (call.device() == nullptr && bytes / inputs < kWorthWaiting) return RowsTogether(call, axis, shape);
  std::vector<Moved> parts;
  size_t boxes = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.In(i).shape[axis] == 0) continue;
    boxes += BoxesOf(call.In(i));
    if (boxes > Moved::kMostBoxes) return CopiedTogether(call, axis, shape);
    parts.push_back(MovedOf(call.In(i)));
  }
  if (auto all = ConcatenatedMoved(std::move(parts), axis)) {
    if (call.device() == nullptr || all->rank() <= kMaxStridedRank) return Unsettled(call, shape, *std::move(all));
  }
  return CopiedTogether(call, axis, shape);
}

std::vector<SliceRange> WholeRanges(const Array& array) {
  std::vector<SliceRange> ranges;
  for (const int64_t dimension : array.shape) ranges.push_back({0, dimension, 1});
  return ranges;
}

// Slice's arguments among a call's inputs. The executor names the node in errors.
struct ArgumentLists {
  using Place = int64_t;
  const Call& call;

  bool Has(size_t i) const { return call.Has(i); }
  StatusOr<std::vector<int64_t>> Integers(size_t i, const char*) const { return call.List(i); }
  StatusOr<std::vector<int64_t>> Places(size_t i, const char*) const { return call.List(i); }
  Status Named(const Status& status) const { return status; }
};

// Where a padded position comes from in a dimension of `size`; -1: nowhere.
int64_t PaddedSource(int64_t at, int64_t size, const std::string& mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant" || size == 0) return -1;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  if (mode == "wrap") return (at % size + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);  // reflect: 0 1 2 3 2 1 0 1 ...
  const int64_t phase = (at % period + period) % period;
  return phase < size ? phase : period - phase;
}

// The amounts to pad at both ends of each dimension.
StatusOr<std::vector<int64_t>> PadAmounts(Call& call, int64_t rank) {
  std::vector<int64_t> given;
  if (call.opset() < 11) {
    SWIZZLE_ASSIGN_OR_RETURN(given, call.Ints("pads"));
  } else {
    if (!call.Has(1)) return InvalidArgument("input 1, the amounts, is left out");
    SWIZZLE_ASSIGN_OR_RETURN(given, call.List(1));
  }
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.Has(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, call.List(3));
  }
  return PadsOfAll(given, axes, rank);
}

// Splits dimensions of [N, C, H, W] as `split` says and puts them in `order`.
StatusOr<Array> Rearranged(Call& call, const Shape& split, const std::vector<int64_t>& order, Shape shape) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array parts, Reshaped(call, call.In(0), split));
  SWIZZLE_ASSIGN_OR_RETURN(const Array moved, Permuted(call, parts, order));
  return Reshaped(call, moved, std::move(shape));
}

StatusOr<int64_t> BlockSize(const Call& call) {
  if (call.In(0).rank() != 4) return InvalidArgument("input 0 must have 4 dimensions");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t block, call.Int("blocksize", 0));
  if (block < 1 || block > (1 << 15)) return InvalidArgument("blocksize is ", block, "; it must be at least 1");
  return block;
}

// Of elements of four bytes: each row of the output takes one of some channels in turn.
StatusOr<Array> InterleavedBlocks(Call& call, int64_t b, bool blocks_first, const Shape& shape) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(x.dtype, shape));
  const int64_t height = x.shape[2], width = x.shape[3];
  const auto* const from = reinterpret_cast<const uint32_t*>(x.data.get());
  auto* const to = reinterpret_cast<uint32_t*>(y.data.get());
  const Rows rows{.array = {}, .order = {}, .count = shape[0] * shape[1] * shape[2], .length = shape[3]};
  ForEachRow(call, rows, [&](int64_t row) {
    const int64_t line = row % shape[2], image = row / shape[2] / shape[1], channel = row / shape[2] % shape[1];
    const auto row_of = [&](int64_t element) {
      const int64_t source = blocks_first ? element * shape[1] + channel : channel * b * b + element;
      return from + ((image * x.shape[1] + source) * height + line / b) * width;
    };
    uint32_t* const out = to + row * shape[3];
    const int64_t first = line % b * b;
    if (b == 2) {
      const uint32_t *const even = row_of(first), *const odd = row_of(first + 1);
      for (int64_t i = 0; i < width; ++i) out[2 * i] = even[i], out[2 * i + 1] = odd[i];
      return;
    }
    for (int64_t k = 0; k < b; ++k) {
      const uint32_t* const in = row_of(first + k);
      for (int64_t i = 0; i < width; ++i) out[i * b + k] = in[i];
    }
  });
  return y;
}

}  // namespace

StatusOr<Array> ShapeOf(Call& call) {
  const Shape& shape = call.In(0).shape;
  const int64_t rank = call.In(0).rank();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t start, call.Int("start", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t end, call.Int("end", rank));
  SWIZZLE_ASSIGN_OR_RETURN(const SliceRange range, ClampSlice(start, end, 1, rank));
  return IntList(call, Shape(shape.begin() + range.start, shape.begin() + range.start + range.count));
}

StatusOr<Array> SizeOf(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array list, IntList(call, {call.In(0).elements()}));
  return list.WithShape({});
}

StatusOr<Array> Reshape(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const bool allow_zero, AllowsZero(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, call.List(1));
  SWIZZLE_ASSIGN_OR_RETURN(shape, ReshapedShape(x.shape, std::move(shape), allow_zero));
  return Reshaped(call, x, std::move(shape));
}

StatusOr<Array> Flatten(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, FlattenAxis(call.node(), x.rank()));
  return Reshaped(call, x, {ProductOf(x.shape, 0, axis), ProductOf(x.shape, axis, x.rank())});
}

StatusOr<Array> Squeeze(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> axes, call.Axes(1, x.rank()));
  const auto is_one = [](int64_t dimension) { return dimension == 1; };
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, SqueezedDimensions(x.shape, axes, is_one));
  return Reshaped(call, x, std::move(shape));
}

StatusOr<Array> Unsqueeze(Call& call) {
  const Array& x = call.In(0);
  std::vector<int64_t> axes;
  if (call.Has(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, call.List(1));
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(axes, call.Ints("axes"));
  }
  SWIZZLE_ASSIGN_OR_RETURN(axes, NormalAxes(axes, x.rank() + static_cast<int64_t>(axes.size())));
  return Reshaped(call, x, UnsqueezedDimensions(x.shape, axes));
}

StatusOr<Array> Transpose(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> order, PermutationOf(call.node(), call.In(0).shape.size()));
  return Permuted(call, call.In(0), order);
}

StatusOr<Array> Expand(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Shape target, call.List(1));
  const Shape shapes[] = {x.shape, target};
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(shapes));
  if (shape == x.shape) return x;
  if (std::ranges::find(shape, 0) != shape.end()) return call.New(x.dtype, shape);
  return MovedBy(call, x, shape, [&](Moved moved) { return BroadcastMoved(std::move(moved), shape); });
}

StatusOr<Array> Tile(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, call.List(1));
  if (repeats.size() != x.shape.size()) return InvalidArgument("there must be one repeat for each dimension");
  const Shape dense = DenseStrides(x.shape);
  Shape shape, split, strides;
  for (size_t d = 0; d < repeats.size(); ++d) {
    int64_t dimension = 0;
    if (repeats[d] < 0 || __builtin_mul_overflow(repeats[d], x.shape[d], &dimension)) {
      return InvalidArgument("dimension ", d, " is repeated ", repeats[d], " times");
    }
    shape.push_back(dimension);
    split.insert(split.end(), {repeats[d], x.shape[d]});
    strides.insert(strides.end(), {0, dense[d]});
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(x.dtype, std::move(split)));
  SWIZZLE_RETURN_IF_ERROR(CopyStrided(call, x, 0, strides, result));
  return Reshaped(call, result, std::move(shape));
}

StatusOr<Array> Slice(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const auto slice, SliceArgumentsOf(call.node(), x.rank(), ArgumentLists{call}));
  std::vector<SliceRange> ranges = WholeRanges(x);
  for (size_t i = 0; i < slice.axes.size(); ++i) {
    const auto d = static_cast<size_t>(slice.axes[i]);
    SWIZZLE_ASSIGN_OR_RETURN(ranges[d], ClampSlice(slice.starts[i], slice.ends[i], slice.steps[i], x.shape[d]));
  }
  return Window(call, x, ranges);
}

StatusOr<Results> Split(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, x.rank()));
  const auto d = static_cast<size_t>(axis);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, call.Ints("split"));
  if (call.Has(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(lengths, call.List(1));
  }
  SWIZZLE_ASSIGN_OR_RETURN(
      lengths, PartLengths(std::move(lengths), x.shape[d], static_cast<int64_t>(call.node().outputs.size())));
  Results parts;
  std::vector<SliceRange> ranges = WholeRanges(x);
  ranges[d].start = 0;
  for (const int64_t length : lengths) {
    ranges[d].count = length;
    SWIZZLE_ASSIGN_OR_RETURN(parts.emplace_back(), Window(call, x, ranges));
    ranges[d].start += length;
  }
  return parts;
}

StatusOr<Array> ConcatArrays(Call& call) {
  const Array& first = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(1, first.rank()));
  Shape shape = first.shape;
  int64_t& length = shape[static_cast<size_t>(axis)];
  length = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    SWIZZLE_RETURN_IF_ERROR(CheckSameType(first, call.In(i)));
    const Shape& other = call.In(i).shape;
    bool fits = other.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) fits = d == static_cast<size_t>(axis) || other[d] == shape[d];
    if (!fits || __builtin_add_overflow(length, other[static_cast<size_t>(axis)], &length)) {
      return InvalidArgument("input ", i, " has shape ", ShapeText(call.In(i).shape), ", input 0 ",
                             ShapeText(first.shape), "; they may differ only along axis ", axis);
    }
  }
  return Joined(call, static_cast<size_t>(axis), shape);
}

StatusOr<Array> Pad(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, call.String("mode", "constant"));
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return InvalidArgument("mode is '", mode, "'; it may be constant, reflect, edge or wrap");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> amounts, PadAmounts(call, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(double value, call.Float("value", 0.0f));
  if (call.opset() >= 11) {
    SWIZZLE_ASSIGN_OR_RETURN(value, call.RealScalar(2, 0.0));
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array real, call.NewTable(DType::kFloat64, {}));
  real.Mutable<double>()[0] = value;
  SWIZZLE_ASSIGN_OR_RETURN(const Array filler, Convert(call.host_memory(), real, x.dtype));
  constexpr int64_t kMaxAmount = int64_t{1} << 31;
  Shape shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = amounts[d], after = amounts[d + shape.size()];
    const bool sane = before > -kMaxAmount && before < kMaxAmount && after > -kMaxAmount && after < kMaxAmount;
    shape[d] = sane ? shape[d] + before + after : -1;
    if (shape[d] < 0) return InvalidArgument("dimension ", d, " is padded by ", before, " and ", after);
  }
  const std::span<const int64_t> before = std::span(amounts).first(shape.size()),
                                 after = std::span(amounts).last(shape.size());
  const bool grows = std::ranges::all_of(amounts, [](int64_t amount) { return amount >= 0; });
  if (grows && shape == x.shape) return x;
  if (grows && mode == "constant" && x.elements() > 0) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array placed, call.Placed(filler));
    return MovedBy(call, x, shape, [&](Moved moved) { return PaddedMoved(std::move(moved), before, after, placed); });
  }
  if (call.device() != nullptr) return Unimplemented("a device pads with numbers alone");
  SWIZZLE_ASSIGN_OR_RETURN(const Array made, Settled(x, call.memory(), call.stream(), nullptr));
  SWIZZLE_ASSIGN_OR_RETURN(const IndexMaps maps, NewIndexMaps(call, shape));
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int64_t i = 0; i < shape[d]; ++i) {
      maps.of[d][static_cast<size_t>(i)] = PaddedSource(i - amounts[d], x.shape[d], mode);
    }
  }
  return Picked(call, made, maps, filler.data.get());
}

StatusOr<Array> DepthToSpace(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t b, BlockSize(call));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, call.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return InvalidArgument("mode is '", mode, "'; it may be DCR or CRD");
  const Shape& s = call.In(0).shape;
  if (s[1] % (b * b) != 0) return InvalidArgument(s[1], " channels are no multiple of blocksize ", b, " squared");
  const int64_t c = s[1] / (b * b);
  const Shape shape = {s[0], c, s[2] * b, s[3] * b};
  if (call.device() == nullptr && ElementBytes(call.In(0).dtype) == sizeof(uint32_t)) {
    return InterleavedBlocks(call, b, mode == "DCR", shape);
  }
  if (mode == "DCR") return Rearranged(call, {s[0], b, b, c, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, shape);
  return Rearranged(call, {s[0], c, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, shape);
}

StatusOr<Array> SpaceToDepth(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t b, BlockSize(call));
  const Shape& s = call.In(0).shape;
  if (s[2] % b != 0 || s[3] % b != 0) return InvalidArgument("height and width are no multiples of blocksize ", b);
  return Rearranged(call, {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4},
                    {s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

}  // namespace swizzle::interpreter
