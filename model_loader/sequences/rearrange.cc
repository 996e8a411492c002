#include "model_loader/sequences/rearrange.h"

#include <algorithm>
#include <functional>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/pair_masks.h"
#include "model_loader/sequences/places.h"
#include "model_loader/sequences/position_numbers.h"

namespace swizzle::sequences {
namespace {

StatusOr<Form> Rearrange(Context& context, const std::function<std::optional<View>(const View&)>& change) {
  Form form = context.Input(0);
  if (std::holds_alternative<Moment>(form)) {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, form));
    form = std::move(tokens);
  }
  if (const auto* known = std::get_if<Known>(&form); known != nullptr && !known->IsUniform()) {
    if (const auto pairs = AsPairs(context, 0); pairs.ok()) {
      form = *pairs;
    } else if (auto distances = DistancesOfTable(context, *known)) {
      form = *std::move(distances);
    } else {
      auto numbers = AsPositionNumbers(context, form);
      if (!numbers.ok()) return context.Refuse("its input is a constant of many elements");
      form = *std::move(numbers);
    }
  }
  if (auto* known = std::get_if<Known>(&form)) {
    const auto changed = change(RepeatedView(known->shape));
    if (!changed) return context.Refuse("the shape ", Text(known->shape), " does not become what it says");
    known->shape = changed->shape();
    known->constant = kNoValue;
    return form;
  }
  View& view = *ViewOf(form);
  const auto changed = change(view);
  const bool may_move = AsMoved(form).has_value() || std::holds_alternative<Scores>(form);
  if (!changed || changed->rank() > kMaxFormRank || (!may_move && changed->Has(AxisKind::kPlaces))) {
    return context.Refuse("the shape ", Text(view.shape()), " does not become what it says");
  }
  view = *changed;
  if (auto moved = AsMoved(form)) return InOrderOrMoved(context, *std::move(moved));
  return form;
}

StatusOr<Wholes> TargetShape(Context& context, const Wholes& from, Wholes target, bool allow_zero) {
  const auto total = Product(from);
  size_t inferred = target.size();
  Whole others;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == Whole{-1}) {
      if (inferred < target.size()) return context.Refuse("its shape leaves two dimensions open");
      inferred = i;
      continue;
    }
    if (target[i] == Whole{0} && !allow_zero && i < from.size()) target[i] = from[i];
    const auto product = Product(others, target[i]);
    if (!product) return context.Refuse("its shape is too large");
    others = *product;
  }
  if (inferred < target.size()) {
    const auto rest = total ? Quotient(*total, others) : std::nullopt;
    if (!rest) return context.Refuse("the shape ", Text(from), " does not become ", Text(target));
    target[inferred] = *rest;
  }
  return target;
}

}  // namespace

StatusOr<Form> InterpretShape(Context& context) {
  const auto shape = ShapeOf(context.Input(0));
  const int64_t rank = static_cast<int64_t>(shape->size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t start, IntAttribute(context.node(), "start", 0));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t end, IntAttribute(context.node(), "end", rank));
  SWIZZLE_ASSIGN_OR_RETURN(const SliceRange range, ClampSlice(start, end, 1, rank));
  Known known{DType::kInt64, {}, {}};
  for (int64_t i = 0; i < range.count; ++i) known.numbers.push_back({0.0, (*shape)[range.start + i]});
  known.shape = {{static_cast<int64_t>(known.numbers.size())}};
  return known;
}

StatusOr<Form> InterpretReshape(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool allow_zero, AllowsZero(context.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes given, WholesOf(context, 1, "shape"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes target, TargetShape(context, *ShapeOf(context.Input(0)), given, allow_zero));
  return Rearrange(context, [&](const View& view) { return Reshaped(view, target); });
}

StatusOr<Form> InterpretFlatten(Context& context) {
  const Wholes shape = *ShapeOf(context.Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, FlattenAxis(context.node(), static_cast<int64_t>(shape.size())));
  const auto outer = Product(Wholes(shape.begin(), shape.begin() + axis));
  const auto inner = Product(Wholes(shape.begin() + axis, shape.end()));
  if (!outer || !inner) return context.Refuse("its shape is too large");
  return Rearrange(context, [&](const View& view) { return Reshaped(view, {*outer, *inner}); });
}

StatusOr<Form> InterpretTranspose(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto perm, PermutationOf(context.node(), ShapeOf(context.Input(0))->size()));
  SWIZZLE_ASSIGN_OR_RETURN(Form form, Rearrange(context, [&](const View& view) { return Transposed(view, perm); }));
  if (auto* products = std::get_if<PlaceProducts>(&form)) TurnPlaces(*products);
  return form;
}

StatusOr<Form> InterpretSqueeze(Context& context) {
  const Wholes shape = *ShapeOf(context.Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(context, 1, static_cast<int64_t>(shape.size())));
  if (!axes && !std::all_of(shape.begin(), shape.end(), [](const Whole& size) { return size.IsNumber(); })) {
    return context.Refuse("which dimensions of ", Text(shape), " it leaves depends on their size");
  }
  const auto kept = SqueezedDimensions(shape, axes, [](const Whole& size) { return size.IsOne(); });
  if (!kept.ok()) return context.Refuse(kept.status().message());
  return Rearrange(context, [&](const View& view) { return Reshaped(view, *kept); });
}

StatusOr<Form> InterpretUnsqueeze(Context& context) {
  const Wholes from = *ShapeOf(context.Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, AxesGiven(context, 1));
  if (!given) return context.Refuse("it has no axes");
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(context, 1, static_cast<int64_t>(from.size() + given->size())));
  const Wholes shape = UnsqueezedDimensions(from, *axes);
  return Rearrange(context, [&](const View& view) { return Reshaped(view, shape); });
}

StatusOr<Form> InterpretTile(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes repeats, WholesOf(context, 1, "repeats"));
  auto vectors = AsConstantVectors(context, 0);
  if (!vectors.ok()) return vectors.status();
  if (repeats.size() != vectors->view.rank()) return context.Refuse("it repeats other dimensions than it has");
  for (size_t i = 0; i < repeats.size(); ++i) {
    Axes& dim = vectors->view.dims[i];
    if (!repeats[i].IsOne()) dim.insert(dim.begin(), Axis{AxisKind::kRepeat, repeats[i]});
  }
  return *std::move(vectors);
}

StatusOr<Form> InterpretPad(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, IntsAttribute(context.node(), "pads", {}));
  if (context.HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(pads, IntegersOf(context, 1, "pads"));
  }
  const bool is_none = std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; });
  if (!is_none) return context.Refuse("it adds positions or channels");
  return context.Input(0);
}

StatusOr<Form> InterpretExpand(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes shape, WholesOf(context, 1, "shape"));
  if (const auto* moment = context.InputAs<Moment>(0); moment != nullptr && moment->tokens.view.shape() == shape) {
    Moment expanded = *moment;
    expanded.expanded = true;
    return expanded;
  }
  int64_t offset = 0;
  const Known* known = context.InputAs<Known>(0);
  if (known != nullptr && Broadcast(known->shape, shape) == known->shape) return *known;
  if (known != nullptr && !known->IsUniform() && IsCountingUp(*known, offset) &&
      known->shape.back() == SizeOf(context.LengthAxis())) {
    Positions positions;
    positions.offset = offset;
    positions.dtype = known->dtype;
    positions.view.dims.resize(known->shape.size());
    positions.view.dims.back() = context.LengthAxis();
    context.ReplaceInput(0, std::move(positions));
  }
  const Form& form = context.Input(0);
  const bool same_in_all = std::holds_alternative<Tokens>(form) || std::holds_alternative<Positions>(form);
  return Rearrange(context, [&](const View& view) -> std::optional<View> {
    auto expanded = Expanded(view, shape);
    if (!expanded || !same_in_all || view.Has(AxisKind::kBatch)) return expanded;
    // What is the same for all sequences is there once for each.
    for (Axes& dim : expanded->dims) {
      const bool batch = dim.size() == 1 && dim[0].kind == AxisKind::kRepeat && !context.BatchAxis().empty() &&
                         dim[0].size == SizeOf(context.BatchAxis());
      if (!batch) continue;
      dim = context.BatchAxis();
      break;
    }
    return expanded;
  });
}

}  // namespace swizzle::sequences
