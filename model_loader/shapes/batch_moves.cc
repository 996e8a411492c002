// Where rows lie in what Reshape, Transpose, Concat and their kin make.
#include <algorithm>
#include <string_view>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/shapes/batch_rows.h"

namespace swizzle {
namespace {

using RowsResult = std::optional<RowsAt>;

// The rows of input 0, where they are.
RowsResult AsBefore(const BatchNode& node) {
  return RowsAt{*node.Rows(0), node.ShapeOf(0)->size(), node.SizeOf(0, *node.Rows(0))};
}

// Rows stay apart if theirs is a multiple of the batch again: then each request's elements, which lie together, are as
// many slices. Dimensions before theirs may stay, be split, or become one with theirs, and come out of it again.
RowsResult Reshaped(const BatchNode& node) {
  const StatusOr<bool> allow_zero = AllowsZero(node.node());
  const size_t axis = *node.Rows(0);
  const auto target = node.List(1);
  const auto outer = node.Outer();
  if (!allow_zero.ok() || !target || !outer) return std::nullopt;
  const bool has_zero = std::ranges::any_of(*target, [](const SymbolicInt& size) { return size.Is(0); });
  if (*allow_zero && has_zero) return std::nullopt;
  size_t place = 0;
  const auto stays = [&] { return (*target)[place].Is(0) || (*target)[place] == node.SizeOf(0, place); };
  while (place < axis && place < target->size() && stays()) ++place;
  int64_t before = *outer;  // of what stands before the rows, and has no dimension yet
  for (size_t i = place; i < axis; ++i) {
    const auto size = node.SizeOf(0, i).Number();
    constexpr int64_t kMost = int64_t{1} << 40;
    if (!size || *size < 1 || *size > kMost / before) return std::nullopt;
    before *= *size;
  }
  for (; place < target->size(); ++place) {
    const auto size = (*target)[place].Number();
    if (size == 1) continue;
    if (before == 1 || !size || *size < 1 || before % *size != 0) break;
    before /= *size;
  }
  if (place >= target->size() || !node.VariesAtMostAt(1, place)) return std::nullopt;
  return RowsAt{place, target->size(), {}, before};
}

RowsResult Flattened(const BatchNode& node) {
  const StatusOr<int64_t> split = FlattenAxis(node.node(), static_cast<int64_t>(node.ShapeOf(0)->size()));
  const bool keeps = split.ok() && *split == 1 && *node.Rows(0) == 0;
  return keeps ? RowsResult({0, 2, node.SizeOf(0, 0)}) : std::nullopt;
}

RowsResult Transposed(const BatchNode& node) {
  RowsResult result = AsBefore(node);
  const StatusOr<std::vector<int64_t>> order = PermutationOf(node.node(), result->rank);
  if (!order.ok()) return std::nullopt;
  result->axis = static_cast<size_t>(std::ranges::find(*order, static_cast<int64_t>(result->axis)) - order->begin());
  return result;
}

RowsResult Squeezed(const BatchNode& node) {
  RowsResult result = AsBefore(node);
  const auto axes = node.Axes(1, result->rank);
  const auto rows = static_cast<int64_t>(result->axis);
  if (!axes || std::ranges::binary_search(*axes, rows)) return std::nullopt;
  result->axis -= static_cast<size_t>(std::ranges::count_if(*axes, [&](int64_t axis) { return axis < rows; }));
  result->rank -= axes->size();
  return result;
}

RowsResult Unsqueezed(const BatchNode& node) {
  RowsResult result = AsBefore(node);
  const auto count = node.Axes(1, kMostSymbolicRank);  // how many there are; their places follow from that
  const auto axes = count ? node.Axes(1, result->rank + count->size()) : std::nullopt;
  if (!axes) return std::nullopt;
  for (const int64_t axis : *axes) result->axis += axis <= static_cast<int64_t>(result->axis) ? 1 : 0;  // ascending
  result->rank += axes->size();
  return result;
}

// Along another dimension than rows', in which all have them.
RowsResult Joined(const BatchNode& node) {
  const RowsResult result = AsBefore(node);
  const auto axis = node.Axis(1, result->rank);
  if (!axis || *axis == result->axis) return std::nullopt;
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.Rows(i) != result->axis || node.ShapeOf(i)->size() != result->rank) return std::nullopt;
  }
  return result;
}

// Gather: data that is the same for all and an index or more a request, or the other way round.
RowsResult LookedUp(const BatchNode& node) {
  const SymbolicShape *const data = node.ShapeOf(0), *const indices = node.ShapeOf(1);
  const auto axis = data == nullptr || indices == nullptr ? std::nullopt : node.Axis(0, data->size());
  const auto rows = node.Rows(0);
  if (!axis || rows == axis || node.IsShared(0) == node.IsShared(1)) return std::nullopt;
  const size_t rank = data->size() - 1 + indices->size();
  if (!rows) return RowsAt{*axis + *node.Rows(1), rank, node.SizeOf(1, *node.Rows(1))};
  return RowsAt{*rows < *axis ? *rows : *rows - 1 + indices->size(), rank, node.SizeOf(0, *rows)};
}

// GatherElements: in each row, where both have rows.
RowsResult Collected(const BatchNode& node) {
  const RowsResult result = AsBefore(node);
  const auto axis = node.Axis(0, result->rank);
  const bool has_same = node.Rows(1) == result->axis && node.ShapeOf(1)->size() == result->rank &&
                        node.SizeOf(1, result->axis) == *result->size;
  return axis && *axis != result->axis && has_same ? result : std::nullopt;
}

// The one number of a list that varies; nothing where there are others or none.
std::optional<size_t> PlaceOfRows(const BatchNode& node, size_t input) {
  const auto list = node.List(input);
  const auto varies = [&](const SymbolicInt& size) { return node.Varies(size); };
  if (!list || std::ranges::count_if(*list, varies) != 1) return std::nullopt;
  return static_cast<size_t>(std::ranges::find_if(*list, varies) - list->begin());
}

// ConstantOfShape: the same number in all rows.
RowsResult Filled(const BatchNode& node) {
  const auto place = PlaceOfRows(node, 0);
  return place ? RowsResult({*place, node.List(0)->size()}) : std::nullopt;
}

// Rows of what is expanded, which are as many afterwards, or of what is shared, expanded to as many.
RowsResult Expanded(const BatchNode& node) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto target = node.List(1);
  if (x == nullptr || !target) return std::nullopt;
  const size_t rank = std::max(x->size(), target->size());
  if (const auto rows = node.Rows(0)) {
    const size_t from_end = x->size() - *rows;
    const bool is_there = target->size() >= from_end;
    const size_t place = is_there ? target->size() - from_end : target->size();
    const bool stays = !is_there || (*target)[place].Is(1) || (*target)[place] == (*x)[*rows];
    return stays && node.VariesAtMostAt(1, place) ? RowsResult({rank - from_end, rank, (*x)[*rows]}) : std::nullopt;
  }
  const auto place = PlaceOfRows(node, 1);
  const size_t from_end = place ? target->size() - *place : 0;
  const bool is_new = place && (x->size() < from_end || (*x)[x->size() - from_end].Is(1));
  return is_new ? RowsResult({rank - from_end, rank, (*target)[*place]}) : std::nullopt;
}

// The rows have to be taken whole, and nothing else may be cut by what varies.
RowsResult Sliced(const BatchNode& node) {
  const auto slice = SliceOf(node);
  const RowsResult result = AsBefore(node);
  if (!slice) return std::nullopt;
  for (size_t i = 0; i < slice->axes.size(); ++i) {
    const SymbolicInt &start = slice->starts[i], &end = slice->ends[i];
    const bool is_right = slice->axes[i] == static_cast<int64_t>(result->axis)
                              ? TakesAll(*result->size, start, end, slice->steps[i])
                              : !node.Varies(start) && !node.Varies(end);
    if (!is_right) return std::nullopt;
  }
  return result;
}

RowsResult Padded(const BatchNode& node) {
  const RowsResult result = AsBefore(node);
  const auto pads = PadsOf(node);
  if (!pads || !node.AreShared(1)) return std::nullopt;
  return (*pads)[result->axis].Is(0) && (*pads)[result->axis + result->rank].Is(0) ? result : std::nullopt;
}

// Rows of what is repeated along other dimensions, or of one slice that is repeated for each.
RowsResult Tiled(const BatchNode& node) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto times = node.List(1);
  if (x == nullptr || !times || times->size() != x->size()) return std::nullopt;
  if (node.Rows(0)) return (*times)[*node.Rows(0)].Is(1) && node.IsShared(1) ? AsBefore(node) : std::nullopt;
  const auto place = PlaceOfRows(node, 1);
  return place && (*x)[*place].Is(1) ? RowsResult({*place, x->size()}) : std::nullopt;
}

// Rows stay as long as they are.
RowsResult Resized(const BatchNode& node) {
  const RowsResult result = AsBefore(node);
  if (const auto scales = ScalesOf(node)) return (*scales)[result->axis] == 1.0f ? result : std::nullopt;
  const auto coordinates = StringAttribute(node.node(), "coordinate_transformation_mode", "half_pixel");
  const auto policy = StringAttribute(node.node(), "keep_aspect_ratio_policy", "stretch");
  const bool plain = coordinates.ok() && *coordinates != "tf_crop_and_resize" && policy.ok() && *policy == "stretch";
  const auto sizes = node.List(3);
  if (!plain || !sizes || sizes->size() != result->rank) return std::nullopt;
  return (*sizes)[result->axis] == *result->size && node.VariesAtMostAt(3, result->axis) ? result : std::nullopt;
}

struct RowsMove {
  std::string_view op;
  bool moves_rows;  // input 0 has to have rows
  RowsResult (*run)(const BatchNode&);
};
constexpr RowsMove kRowsMoves[] = {
    {"Concat", true, Joined},        {"ConstantOfShape", false, Filled}, {"Expand", false, Expanded},
    {"Flatten", true, Flattened},    {"Gather", false, LookedUp},        {"GatherElements", true, Collected},
    {"Pad", true, Padded},           {"Reshape", true, Reshaped},        {"Resize", true, Resized},
    {"Slice", true, Sliced},         {"Squeeze", true, Squeezed},        {"Tile", false, Tiled},
    {"Transpose", true, Transposed}, {"Unsqueeze", true, Unsqueezed},    {"Upsample", true, Resized},
};

}  // namespace

std::optional<RowsAt> MovedRows(const BatchNode& node) {
  const auto* const move = std::ranges::find(kRowsMoves, node.node().op, &RowsMove::op);
  if (move == std::end(kRowsMoves) || (move->moves_rows && !node.Rows(0))) return std::nullopt;
  return move->run(node);
}

}  // namespace swizzle
