// How rows lie in what Reshape, Transpose, Concat and their kin make.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "model_loader/fallback/batch_rules.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle::fallback {
namespace {

using Result = std::optional<Extents>;

constexpr int64_t kMostAxes = 64;

// A new dimension that is given as `wanted`, where `kept` stands at the same place before.
Extent Sized(const Extent& wanted, const Extent& kept) {
  if (wanted.Is(0)) return kept;
  return wanted.Is(-1) ? Extent() : wanted;
}

// Reshape to a list that doesn't go by the batch, of what doesn't.
Result ReshapedShared(const Extents* x, const Extents& target, bool allow_zero) {
  Extents result;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].of_batch) return std::nullopt;
    const Extent kept = !allow_zero && x != nullptr && i < x->size() ? (*x)[i] : Extent();
    result.push_back(Sized(target[i], kept));
  }
  return result;
}

// How many times the batch the rows' dimension is in a target that leaves it to be found: the elements of a request by
// those of a slice, if they are known and it comes out even.
std::optional<Extent> LeftForRows(const Extents& x, const Extents& target, size_t axis) {
  Extents request(x.begin() + static_cast<ptrdiff_t>(axis) + 1, x.end());
  Extents slice(target.begin() + static_cast<ptrdiff_t>(axis) + 1, target.end());
  for (size_t i = 0; i < slice.size(); ++i) {
    if (slice[i].Is(0)) slice[i] = i < request.size() ? x[axis + 1 + i] : Extent();
    if (slice[i].symbol == 0) continue;
    const auto same = std::ranges::find(request, slice[i]);
    if (same != request.end()) *same = slice[i] = Extent::Of(1);
  }
  const auto behind = CountOf(request, 0, request.size()), of_slice = CountOf(slice, 0, slice.size());
  if (!behind || !x[axis].IsKnown()) return std::nullopt;
  const auto of_request = CountOf({Extent::Of(*behind), Extent::Of(x[axis].number)}, 0, 2);
  if (!of_request || !of_slice || *of_slice < 1 || *of_request % *of_slice != 0) return std::nullopt;
  const int64_t times = *of_request / *of_slice;
  return times >= 1 ? std::optional(Extent::Batch(times)) : std::nullopt;  // a size of 0 would be x's
}

// Rows stay apart if all dimensions before theirs stay, and theirs is a multiple of the batch again: then each
// request's elements, which lie together, are as many slices.
Result ReshapedRows(const Extents& x, const Extents& target) {
  const auto axis = static_cast<size_t>(BatchAxis(x));
  if (target.size() <= axis) return std::nullopt;
  Extents result;
  for (size_t i = 0; i < axis; ++i) {
    const bool stays = target[i].Is(0) || target[i].Equals(x[i]);
    if (!stays) return std::nullopt;
    result.push_back(x[i]);
  }
  std::optional<Extent> rows = target[axis].Is(0) ? x[axis] : target[axis];
  if (target[axis].Is(-1)) rows = LeftForRows(x, target, axis);
  if (!rows || !rows->of_batch) return std::nullopt;
  result.push_back(*rows);
  for (size_t i = axis + 1; i < target.size(); ++i) {
    if (target[i].of_batch) return std::nullopt;
    result.push_back(Sized(target[i], i < x.size() ? x[i] : Extent()));
  }
  const auto left = std::ranges::find_if(target, [](const Extent& size) { return size.Is(-1); });
  const auto place = static_cast<size_t>(left - target.begin());
  if (left == target.end() || place == axis) return result;
  result[place] = Extent::Of(1);
  const auto before = CountOf(x, axis + 1, x.size()), after = CountOf(result, axis + 1, result.size());
  if (!before || !after || !x[axis].IsKnown() || !rows->IsKnown()) {
    result[place] = Extent();
    return result;
  }
  const auto all = CountOf({Extent::Of(*before), Extent::Of(x[axis].number)}, 0, 2);
  const auto others = CountOf({Extent::Of(*after), Extent::Of(rows->number)}, 0, 2);
  const bool even = all && others && *others > 0 && *all % *others == 0;
  result[place] = even ? Extent::Of(*all / *others) : Extent();
  return result;
}

Result Reshaped(const NodeFacts& node) {
  const StatusOr<bool> allow_zero = AllowsZero(node.node());
  const auto target = node.In(1).List();
  if (!allow_zero.ok() || !target) return std::nullopt;
  if (!node.In(0).HasRows()) return ReshapedShared(node.ShapeOf(0), *target, *allow_zero);
  return *allow_zero ? std::nullopt : ReshapedRows(*node.ShapeOf(0), *target);
}

Result Flattened(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  const auto axis = node.Int("axis", 1);
  if (x == nullptr || !axis) return std::nullopt;
  const int64_t split = *axis < 0 ? *axis + static_cast<int64_t>(x->size()) : *axis;
  if (split < 0 || split > static_cast<int64_t>(x->size())) return std::nullopt;
  const auto behind = CountOf(*x, static_cast<size_t>(split), x->size());
  const Extent columns = behind ? Extent::Of(*behind) : Extent();
  if (!GoByBatch(*x)) return Extents{Extent(), columns};
  return split == 1 && BatchAxis(*x) == 0 ? Result({x->front(), columns}) : std::nullopt;
}

Result Transposed(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  const StatusOr<std::vector<int64_t>> order = PermutationOf(node.node(), x->size());
  if (!order.ok()) return std::nullopt;
  Extents result;
  for (const int64_t axis : *order) result.push_back((*x)[static_cast<size_t>(axis)]);
  return result;
}

Result Squeezed(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  const auto axes = node.Axes(1, static_cast<int64_t>(x->size()));
  if (!axes) return std::nullopt;
  const auto may_be_one = [](const Extent& size) { return !size.of_batch && (size.Is(1) || !size.IsKnown()); };
  const auto kept = SqueezedDimensions(*x, axes, may_be_one);
  return kept.ok() ? Result(*kept) : std::nullopt;
}

Result Unsqueezed(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  const auto bound = node.Axes(1, kMostAxes);  // as many as there are; refined below
  if (x == nullptr || !bound) return std::nullopt;
  const auto axes = node.Axes(1, static_cast<int64_t>(x->size() + bound->size()));
  if (!axes) return std::nullopt;
  return UnsqueezedDimensions(*x, *axes);
}

// Along another dimension than rows', in which all have them.
Result Joined(const NodeFacts& node) {
  Result result;
  const Extents* const first = node.ShapeOf(0);
  const auto axis = first == nullptr ? std::nullopt : node.Axis(1, static_cast<int64_t>(first->size()));
  if (!axis) return std::nullopt;
  const auto at = static_cast<size_t>(*axis);
  for (size_t i = 0; i < node.size(); ++i) {
    const Extents* const x = node.ShapeOf(i);
    if (x == nullptr || x->size() != first->size() || (*x)[at].of_batch || BatchAxis(*x) != BatchAxis(*first)) {
      return std::nullopt;
    }
    if (!result) {
      result = *x;
    } else {
      (*result)[at] = *Computed("Add", (*result)[at], (*x)[at]);
    }
  }
  return result;
}

// Gather: data that is the same for all and an index or more a request, or the other way round.
Result LookedUp(const NodeFacts& node) {
  const Extents* const data = node.ShapeOf(0);
  const Extents* const indices = node.ShapeOf(1);
  if (data == nullptr || indices == nullptr || node.In(1).HasBatchElements()) return std::nullopt;
  const auto axis = node.Axis(0, static_cast<int64_t>(data->size()));
  if (!axis || (*data)[static_cast<size_t>(*axis)].of_batch) return std::nullopt;
  if (GoByBatch(*data) && GoByBatch(*indices)) return std::nullopt;
  Extents result(data->begin(), data->begin() + *axis);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + *axis + 1, data->end());
  return result;
}

// GatherElements: in each row, where both have rows.
Result Collected(const NodeFacts& node) {
  const Extents* const data = node.ShapeOf(0);
  const Extents* const indices = node.ShapeOf(1);
  if (data == nullptr || indices == nullptr || data->size() != indices->size()) return std::nullopt;
  const auto axis = node.Axis(0, static_cast<int64_t>(data->size()));
  const int64_t rows = BatchAxis(*data);
  if (!axis || rows != BatchAxis(*indices) || rows == *axis) return std::nullopt;
  const bool same = rows < 0 || (*data)[static_cast<size_t>(rows)].Equals((*indices)[static_cast<size_t>(rows)]);
  return same ? Result(*indices) : std::nullopt;
}

// A value repeated to a shape: ConstantOfShape's number, Expand's input.
Result Expanded(const NodeFacts& node) {
  const bool fills = node.node().op == "ConstantOfShape";
  const auto target = node.In(fills ? 0 : 1).List();
  if (!target) return std::nullopt;
  if (fills) return GoesByBatchOnceAtMost(*target) ? Result(*target) : std::nullopt;
  return node.ShapeOf(0) == nullptr ? std::nullopt : Broadcast(*node.ShapeOf(0), *target);
}

// Slice's arguments as far as they are known: starts and ends may be any.
struct SliceSource {
  using Place = Extent;
  const NodeFacts& node;

  bool Has(size_t i) const { return node.Has(i); }
  StatusOr<std::vector<Extent>> Places(size_t i, const char*) const {
    auto list = node.In(i).List();
    return list ? StatusOr<std::vector<Extent>>(*std::move(list)) : InvalidArgument("it is not known");
  }
  StatusOr<std::vector<int64_t>> Integers(size_t i, const char*) const {
    auto list = node.Numbers(i);
    return list ? StatusOr<std::vector<int64_t>>(*std::move(list)) : InvalidArgument("it is not known");
  }
  Status Named(const Status& status) const { return status; }
};

Result Sliced(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  const auto slice = SliceArgumentsOf(node.node(), static_cast<int64_t>(x->size()), SliceSource{node});
  if (!slice.ok()) return std::nullopt;
  Extents result = *x;
  for (size_t i = 0; i < slice->axes.size(); ++i) {
    Extent& size = result[static_cast<size_t>(slice->axes[i])];
    const Extent start = slice->starts[i], end = slice->ends[i];
    if (start.of_batch || end.of_batch) return std::nullopt;
    if (size.of_batch) {
      const bool all = start.Is(0) && end.IsNumber() && end.number >= std::numeric_limits<int32_t>::max();
      if (!all || slice->steps[i] != 1) return std::nullopt;
    } else if (size.IsNumber() && start.IsNumber() && end.IsNumber()) {
      const StatusOr<SliceRange> range = ClampSlice(start.number, end.number, slice->steps[i], size.number);
      if (!range.ok()) return std::nullopt;
      size = Extent::Of(range->count);
    } else {
      size = Extent();
    }
  }
  return result;
}

Result Padded(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  if (x == nullptr || node.In(2).HasRows()) return std::nullopt;
  const size_t rank = x->size();
  auto pads = node.In(1).List();
  if (node.opset() < 11) {
    const auto given = IntsAttribute(node.node(), "pads", {});
    if (!given.ok()) return std::nullopt;
    pads = NumbersOf(*given);
  }
  auto axes = node.Has(3) ? node.Axes(3, static_cast<int64_t>(rank)) : std::vector<int64_t>();
  for (size_t i = 0; !node.Has(3) && i < rank; ++i) axes->push_back(static_cast<int64_t>(i));
  const bool ordered = !node.Has(3) || (node.Numbers(3) && axes && *node.Numbers(3) == *axes);
  if (!pads || !axes || !ordered || pads->size() != 2 * axes->size()) return std::nullopt;
  Extents result = *x;
  for (size_t i = 0; i < axes->size(); ++i) {
    Extent& size = result[static_cast<size_t>((*axes)[i])];
    const Extent before = (*pads)[i], after = (*pads)[i + axes->size()];
    if (size.of_batch && !(before.Is(0) && after.Is(0))) return std::nullopt;
    const auto more = Computed("Add", before, after);
    const auto sum = more && !size.of_batch ? Computed("Add", size, *more) : size;
    if (!sum) return std::nullopt;
    size = *sum;
  }
  return result;
}

Result Tiled(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  const auto repeats = node.In(1).List();
  if (x == nullptr || !repeats || repeats->size() != x->size()) return std::nullopt;
  Extents result;
  for (size_t i = 0; i < x->size(); ++i) {
    const Extent size = (*x)[i], times = (*repeats)[i];
    const bool keeps = !size.of_batch || times.Is(1);
    if (!keeps || (times.of_batch && !size.Is(1))) return std::nullopt;
    result.push_back(*Computed("Mul", size, times));
  }
  return GoesByBatchOnceAtMost(result) ? Result(result) : std::nullopt;
}

// Of Resize and Upsample: one scale for each dimension, where they are constant.
std::optional<std::vector<float>> ScalesOf(const NodeFacts& node, size_t input) {
  const Tensor* const tensor = node.In(input).constant;
  if (tensor == nullptr || tensor->dtype != DType::kFloat32) return std::nullopt;
  const auto floats = tensor->floats();
  return std::vector<float>(floats.begin(), floats.end());
}

// Rows stay as long as they are. A box to cut out, which the coordinates may ask for, is none of this.
Result Resized(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  const auto coordinates = StringAttribute(node.node(), "coordinate_transformation_mode", "half_pixel");
  const auto policy = StringAttribute(node.node(), "keep_aspect_ratio_policy", "stretch");
  const bool plain = coordinates.ok() && *coordinates != "tf_crop_and_resize" && policy.ok() && *policy == "stretch";
  const bool by_attribute = node.node().op == "Upsample" && node.opset() < 9;
  if (x == nullptr || !plain || by_attribute || node.node().attributes.contains("axes")) return std::nullopt;
  const int64_t rows = BatchAxis(*x);
  Extents result(x->size());
  const bool by_sizes = node.Has(3);
  const auto sizes = by_sizes ? node.In(3).List() : std::nullopt;
  const auto scales = ScalesOf(node, node.opset() < 11 ? 1 : 2);
  if (by_sizes ? !sizes || sizes->size() != x->size() : !scales || scales->size() != x->size()) return std::nullopt;
  for (size_t i = 0; i < x->size(); ++i) {
    const bool stays = by_sizes ? (*sizes)[i].Equals((*x)[i]) : (*scales)[i] == 1.0f;
    if (static_cast<int64_t>(i) == rows ? !stays : by_sizes && (*sizes)[i].of_batch) return std::nullopt;
    result[i] = by_sizes ? (*sizes)[i] : stays ? (*x)[i] : Extent();
    if (by_sizes || stays || !(*x)[i].IsNumber() || (*x)[i].number > (1 << 14)) continue;
    const float scale = (*scales)[i];  // of one that is no whole number, or of much, the result depends on rounding
    if (scale >= 1.0f && scale < 1024.0f && scale == std::floor(scale)) {
      result[i] = Extent::Of((*x)[i].number * static_cast<int64_t>(scale));
    }
  }
  return result;
}

struct Move {
  std::string_view op;
  Result (*run)(const NodeFacts&);
};
constexpr Move kMoves[] = {
    {"Concat", Joined},        {"ConstantOfShape", Expanded}, {"Expand", Expanded},
    {"Flatten", Flattened},    {"Gather", LookedUp},          {"GatherElements", Collected},
    {"Pad", Padded},           {"Reshape", Reshaped},         {"Resize", Resized},
    {"Slice", Sliced},         {"Squeeze", Squeezed},         {"Tile", Tiled},
    {"Transpose", Transposed}, {"Unsqueeze", Unsqueezed},     {"Upsample", Resized},
};

}  // namespace

std::optional<Extents> MovedShape(const NodeFacts& node) {
  const auto found = std::ranges::find(kMoves, node.node().op, &Move::op);
  return found == std::end(kMoves) ? std::nullopt : found->run(node);
}

}  // namespace swizzle::fallback
