// The shapes that Reshape, Concat, Slice and their kin make, in symbols.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {
namespace {

using ShapeResult = std::optional<SymbolicShape>;

ShapeResult Joined(const SymbolicNode& node, Symbols& symbols) {
  ShapeResult result;
  for (size_t i = 0; i < node.size(); ++i) {
    const SymbolicShape* const x = node.ShapeOf(i);
    if (x == nullptr) return std::nullopt;
    const auto axis = node.Axis(1, x->size());
    if (!axis || (result && result->size() != x->size())) return std::nullopt;
    if (result) (*result)[*axis] = symbols.Sum((*result)[*axis], (*x)[*axis]);
    if (!result) result = *x;
  }
  return result;
}

// One dimension for each element of the list that is input `i`, whatever these are.
ShapeResult OfListedRank(const SymbolicNode& node, size_t i, Symbols& symbols) {
  const SymbolicShape* const list = node.ShapeOf(i);
  const auto count = list != nullptr && list->size() == 1 ? list->front().Number() : std::nullopt;
  return count && *count >= 0 && *count <= static_cast<int64_t>(kMostSymbolicRank)
             ? ShapeResult(symbols.OfRank(static_cast<size_t>(*count)))
             : std::nullopt;
}

ShapeResult Transposed(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto perm = IntsAttribute(node.node(), "perm", {});
  if (x == nullptr && perm.ok() && !perm->empty() && perm->size() <= kMostSymbolicRank) {
    return symbols.OfRank(perm->size());
  }
  const auto order = x == nullptr ? std::vector<int64_t>() : PermutationOf(node.node(), x->size()).value_or(Shape());
  if (x == nullptr || order.size() != x->size()) return std::nullopt;
  SymbolicShape result;
  for (const int64_t axis : order) result.push_back((*x)[static_cast<size_t>(axis)]);
  return result;
}

// What is left of x's elements where the others of the target took theirs.
SymbolicInt Left(SymbolicShape x, const SymbolicShape& others, Symbols& symbols) {
  SymbolicShape unmatched;
  for (const SymbolicInt& other : others) {
    const auto same = std::ranges::find(x, other);
    if (same == x.end()) {
      unmatched.push_back(other);
    } else {
      x.erase(same);
    }
  }
  return symbols.Quotient(symbols.Product(x), symbols.Product(unmatched));
}

ShapeResult Reshaped(const SymbolicNode& node, Symbols& symbols) {
  const auto target = node.List(1);
  const StatusOr<bool> allow_zero = AllowsZero(node.node());
  if (!target) return OfListedRank(node, 1, symbols);
  if (!allow_zero.ok()) return std::nullopt;
  const SymbolicShape* const x = node.ShapeOf(0);
  SymbolicShape result, others;
  std::optional<size_t> left;
  for (size_t i = 0; i < target->size(); ++i) {
    SymbolicInt size = (*target)[i];
    if (size.Is(0) && !*allow_zero) size = x != nullptr && i < x->size() ? (*x)[i] : symbols.New();
    if (size.Is(-1) && !left) {
      left = i;
    } else {
      if (!symbols.IsNotNegative(size)) size = symbols.New();  // perhaps it is -1
      others.push_back(size);
    }
    result.push_back(std::move(size));
  }
  if (left) result[*left] = x == nullptr ? symbols.New() : Left(*x, others, symbols);
  return result;
}

ShapeResult Flattened(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return symbols.OfRank(2);
  const StatusOr<int64_t> axis = FlattenAxis(node.node(), static_cast<int64_t>(x->size()));
  if (!axis.ok()) return std::nullopt;
  return SymbolicShape{symbols.Product(std::span(*x).first(static_cast<size_t>(*axis))),
                       symbols.Product(std::span(*x).subspan(static_cast<size_t>(*axis)))};
}

ShapeResult Squeezed(const SymbolicNode& node, Symbols&) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  const auto axes = node.Axes(1, x->size());
  // Without axes whatever happens to be 1 goes.
  const auto is_number = [](const SymbolicInt& size) { return size.Number().has_value(); };
  if (!axes && (node.HasAxes(1) || !std::ranges::all_of(*x, is_number))) return std::nullopt;
  const auto may_be_one = [](const SymbolicInt& size) { return size.Number().value_or(1) == 1; };
  const auto kept = SqueezedDimensions(*x, axes, may_be_one);
  return kept.ok() ? ShapeResult(*kept) : std::nullopt;
}

ShapeResult Unsqueezed(const SymbolicNode& node, Symbols&) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto count = node.Axes(1, 64);  // how many there are; their places follow from that
  const auto axes = x == nullptr || !count ? std::nullopt : node.Axes(1, x->size() + count->size());
  return axes ? ShapeResult(UnsqueezedDimensions(*x, *axes)) : std::nullopt;
}

SymbolicInt Cut(const SymbolicInt& size, const SymbolicInt& start, const SymbolicInt& end, int64_t step,
                Symbols& symbols) {
  const auto from = start.Number(), to = end.Number(), of = size.Number();
  if (TakesAll(size, start, end, step)) return size;
  if (of && from && to) {
    const auto range = ClampSlice(*from, *to, step, *of);
    if (range.ok()) return range->count;
  }
  return symbols.Size("slice", std::array{size, start, end, SymbolicInt(step)});
}

ShapeResult Sliced(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  SymbolicShape result = *x;
  const auto slice = SliceOf(node);
  if (!slice) std::ranges::generate(result, [&] { return symbols.New(); });
  for (size_t i = 0; slice && i < slice->axes.size(); ++i) {
    SymbolicInt& size = result[static_cast<size_t>(slice->axes[i])];
    size = Cut(size, slice->starts[i], slice->ends[i], slice->steps[i], symbols);
  }
  return result;
}

ShapeResult Parted(const SymbolicNode& node, size_t output, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto axis = x == nullptr ? std::nullopt : node.Axis(0, x->size());
  if (!axis) return std::nullopt;
  SymbolicShape result = *x;
  SymbolicInt& size = result[*axis];
  const auto parts = static_cast<int64_t>(node.node().outputs.size());
  const auto told = IntsAttribute(node.node(), "split", {});
  const bool is_told = node.Has(1) || node.node().attributes.contains("split");
  const auto lengths = node.List(1);
  const auto number = size.Number();
  if (lengths && output < lengths->size()) {
    size = (*lengths)[output];
  } else if (!node.Has(1) && told.ok() && output < told->size()) {
    size = (*told)[output];
  } else if (!is_told && number && *number % parts == 0) {
    size = *number / parts;
  } else if (is_told || parts > 1) {
    size = symbols.New();
  }
  return result;
}

ShapeResult LookedUp(const SymbolicNode& node, Symbols&) {
  const SymbolicShape *const x = node.ShapeOf(0), *const indices = node.ShapeOf(1);
  const auto axis = x == nullptr || indices == nullptr ? std::nullopt : node.Axis(0, x->size());
  if (!axis) return std::nullopt;
  SymbolicShape result(x->begin(), x->begin() + static_cast<ptrdiff_t>(*axis));
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), x->begin() + static_cast<ptrdiff_t>(*axis) + 1, x->end());
  return result;
}

ShapeResult Expanded(const SymbolicNode& node, Symbols& symbols) {
  const auto target = node.List(1);
  const SymbolicShape* const x = node.ShapeOf(0);
  if (target && x != nullptr) return BroadcastSymbols(*x, *target, symbols);
  const ShapeResult listed = OfListedRank(node, 1, symbols);
  return listed && x != nullptr && x->size() > listed->size() ? ShapeResult(symbols.OfRank(x->size())) : listed;
}

ShapeResult Filled(const SymbolicNode& node, Symbols& symbols) {
  const auto target = node.List(0);
  return target ? ShapeResult(*target) : OfListedRank(node, 0, symbols);
}

ShapeResult Padded(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  SymbolicShape result = *x;
  const auto pads = PadsOf(node);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = pads ? symbols.Sum(result[i], symbols.Sum((*pads)[i], (*pads)[i + result.size()])) : symbols.New();
    if (!symbols.IsNotNegative(result[i])) result[i] = symbols.Size("padded", std::array{result[i]});
  }
  return result;
}

ShapeResult Tiled(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto times = node.List(1);
  if (x == nullptr) return std::nullopt;
  SymbolicShape result = *x;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = times && times->size() == x->size() ? symbols.Product(result[i], (*times)[i]) : symbols.New();
  }
  return result;
}

// How large a dimension is after a scale; opaque where rounding, which isn't followed, may decide.
SymbolicInt Scaled(const SymbolicInt& size, float scale, Symbols& symbols) {
  constexpr int64_t kMostExact = 1 << 14;
  const auto number = size.Number();
  if (scale == 1.0f) return size;
  const bool is_exact = scale > 1.0f && scale < 1024.0f && scale == std::floor(scale);
  if (number && *number >= 0 && *number <= kMostExact && is_exact) return *number * static_cast<int64_t>(scale);
  return symbols.Size(Concat("scaled by ", std::bit_cast<uint32_t>(scale)), std::array{size});
}

// Resize and Upsample: to sizes that are told, or by scales.
ShapeResult Resized(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  SymbolicShape result(x->size());
  if (const auto scales = ScalesOf(node)) {
    for (size_t i = 0; i < x->size(); ++i) result[i] = Scaled((*x)[i], (*scales)[i], symbols);
    return result;
  }
  std::ranges::generate(result, [&] { return symbols.New(); });
  const auto sizes = node.List(3);
  const bool by_sizes = node.node().op == "Resize" && !node.node().attributes.contains("keep_aspect_ratio_policy");
  if (!by_sizes || !sizes) return result;
  std::vector<int64_t> axes(x->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.node().attributes.contains("axes")) {
    axes = IntsAttribute(node.node(), "axes", {}).value_or(std::vector<int64_t>());
    if (NormalAxes(axes, static_cast<int64_t>(x->size())).value_or(std::vector<int64_t>()) != axes) return result;
    result = *x;
  }
  for (size_t i = 0; i < axes.size() && axes.size() == sizes->size(); ++i) {
    result[static_cast<size_t>(axes[i])] = (*sizes)[i];
  }
  return axes.size() == sizes->size() ? ShapeResult(result) : std::nullopt;
}

ShapeResult Blocked(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const auto block = node.Int("blocksize", 0);
  if (x == nullptr || x->size() != 4 || !block || *block < 1 || *block > (1 << 15)) return std::nullopt;
  const bool deepens = node.node().op == "SpaceToDepth";
  const auto scaled = [&](const SymbolicInt& size, const SymbolicInt& by, bool grows) {
    return grows ? symbols.Product(size, by) : symbols.Quotient(size, by);
  };
  return SymbolicShape{(*x)[0], scaled((*x)[1], *block * *block, deepens), scaled((*x)[2], *block, !deepens),
                       scaled((*x)[3], *block, !deepens)};
}

struct ShapeMove {
  std::string_view op;
  ShapeResult (*run)(const SymbolicNode&, Symbols&);
};
constexpr ShapeMove kShapeMoves[] = {
    {"Concat", Joined},     {"ConstantOfShape", Filled}, {"DepthToSpace", Blocked}, {"Expand", Expanded},
    {"Flatten", Flattened}, {"Gather", LookedUp},        {"Pad", Padded},           {"Reshape", Reshaped},
    {"Resize", Resized},    {"Slice", Sliced},           {"SpaceToDepth", Blocked}, {"Squeeze", Squeezed},
    {"Tile", Tiled},        {"Transpose", Transposed},   {"Unsqueeze", Unsqueezed}, {"Upsample", Resized},
};

}  // namespace

std::optional<SliceArguments<SymbolicInt>> SliceOf(const SymbolicNode& node) {
  struct Source {
    using Place = SymbolicInt;
    const SymbolicNode& node;
    bool Has(size_t i) const { return node.Has(i); }
    StatusOr<std::vector<SymbolicInt>> Places(size_t i, const char* what) const {
      if (auto list = node.List(i)) return *std::move(list);
      return InvalidArgument("its ", what, " are not known");
    }
    StatusOr<std::vector<int64_t>> Integers(size_t i, const char* what) const {
      if (auto numbers = node.Numbers(i)) return *std::move(numbers);
      return InvalidArgument("its ", what, " are not known");
    }
    Status Named(Status status) const { return status; }
  };
  if (node.ShapeOf(0) == nullptr) return std::nullopt;
  auto slice = SliceArgumentsOf(node.node(), static_cast<int64_t>(node.ShapeOf(0)->size()), Source{node});
  return slice.ok() ? std::optional(*std::move(slice)) : std::nullopt;
}

bool TakesAll(const SymbolicInt& size, const SymbolicInt& start, const SymbolicInt& end, int64_t step) {
  constexpr int64_t kBeyond = (int64_t{1} << 31) - 1;  // more than any size is
  return step == 1 && start.Is(0) && (end == size || end.Number().value_or(0) >= kBeyond);
}

std::optional<std::vector<SymbolicInt>> PadsOf(const SymbolicNode& node) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr) return std::nullopt;
  auto given = node.List(1);
  if (!node.Has(1) && node.node().attributes.contains("pads")) {
    const auto pads = IntsAttribute(node.node(), "pads", {});
    if (pads.ok()) given.emplace(pads->begin(), pads->end());
  }
  std::vector<int64_t> axes(x->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (node.Has(3)) {
    const auto named = node.Numbers(3);
    if (!named) return std::nullopt;
    axes = *named;
  }
  if (!given || given->size() != 2 * axes.size()) return std::nullopt;
  std::vector<SymbolicInt> pads(2 * x->size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = NormalAxis(axes[i], static_cast<int64_t>(x->size()));
    if (!axis.ok()) return std::nullopt;
    pads[static_cast<size_t>(*axis)] = (*given)[i];
    pads[static_cast<size_t>(*axis) + x->size()] = (*given)[i + axes.size()];
  }
  return pads;
}

std::optional<std::span<const float>> ScalesOf(const SymbolicNode& node) {
  // A box to cut out, which the coordinates may ask for, changes what is scaled.
  const auto coordinates = StringAttribute(node.node(), "coordinate_transformation_mode", "half_pixel");
  const bool cuts = !coordinates.ok() || *coordinates == "tf_crop_and_resize";
  const bool by_attribute = node.node().op == "Upsample" && node.opset() < 9;
  if (cuts || by_attribute || node.Has(3) || node.node().attributes.contains("axes")) return std::nullopt;
  const auto scales = node.Floats(node.opset() < 11 ? 1 : 2);
  const bool is_for_each = scales && node.ShapeOf(0) != nullptr && scales->size() == node.ShapeOf(0)->size();
  return is_for_each ? scales : std::nullopt;
}

std::optional<SymbolicShape> MovedShape(const SymbolicNode& node, size_t output, Symbols& symbols) {
  if (node.node().op == "Split") return Parted(node, output, symbols);
  const auto move = std::ranges::find(kShapeMoves, node.node().op, &ShapeMove::op);
  return move == std::end(kShapeMoves) ? std::nullopt : move->run(node, symbols);
}

}  // namespace swizzle
