// Operators that only give elements another place.
#include <algorithm>
#include <limits>
#include <numeric>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

constexpr size_t kMaxRank = 8;
constexpr int64_t kToTheEnd = std::numeric_limits<int32_t>::max();  // exporters' "all of it"

View RepeatedView(const Wholes& shape) {
  View view;
  for (const Whole& size : shape) view.dims.push_back(AsDimension({AxisKind::kRepeat, size}));
  return view;
}

// What a slice takes of a dimension: from `start`, so many.
struct Taken {
  Whole start;
  Whole count;
};

// Nothing where that depends on the batch or the length.
std::optional<Taken> TakenOf(const Whole& size, Whole start, Whole end) {
  if (size.IsNumber() && start.IsNumber() && end.IsNumber()) {
    const auto range = ClampSlice(start.factor, end.factor, 1, size.factor);
    return Taken{{range->start}, {range->count}};
  }
  const auto from_end = [&](Whole& place) {
    if (place.factor >= 0) return true;
    const auto moved = Sum(size, place);
    if (moved) place = *moved;
    return moved.has_value() && moved->factor >= 0;
  };
  if (!from_end(start) || !from_end(end)) return std::nullopt;
  if (end.IsNumber() && end.factor >= kToTheEnd) end = size;
  if (end.batches == size.batches && end.lengths == size.lengths) end.factor = std::min(end.factor, size.factor);
  const auto count = Difference(end, start);
  if (!count || count->factor < 0) return std::nullopt;
  return Taken{start, *count};
}

}  // namespace

StatusOr<Form> Walk::Rearrange(const std::function<std::optional<View>(const View&)>& change) {
  Form form = Input(0);
  if (std::holds_alternative<Moment>(form)) {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(form));
    form = std::move(tokens);
  }
  if (const auto* known = std::get_if<Known>(&form); known != nullptr && !known->IsUniform()) {
    const auto pairs = AsPairs(0);
    if (!pairs.ok()) return Refuse("its input is a constant of many elements");
    form = *pairs;
  }
  if (auto* known = std::get_if<Known>(&form)) {
    const auto changed = change(RepeatedView(known->shape));
    if (!changed) return Refuse("the shape ", Text(known->shape), " does not become what it says");
    known->shape = changed->shape();
    known->constant = kNoValue;
    return form;
  }
  View& view = *ViewOf(form);
  const auto changed = change(view);
  if (!changed || changed->rank() > kMaxRank) {
    return Refuse("the shape ", Text(view.shape()), " does not become what it says");
  }
  view = *changed;
  return form;
}

StatusOr<Form> Walk::InterpretShape() {
  const auto shape = ShapeOf(Input(0));
  const int64_t rank = static_cast<int64_t>(shape->size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t start, IntAttribute(node(), "start", 0));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t end, IntAttribute(node(), "end", rank));
  SWIZZLE_ASSIGN_OR_RETURN(const SliceRange range, ClampSlice(start, end, 1, rank));
  Known known{DType::kInt64, {}, {}};
  for (int64_t i = 0; i < range.count; ++i) known.numbers.push_back({0.0, (*shape)[range.start + i]});
  known.shape = {{static_cast<int64_t>(known.numbers.size())}};
  return known;
}

StatusOr<Wholes> Walk::TargetShape(const Wholes& from, Wholes target, bool allow_zero) const {
  const auto total = Product(from);
  size_t inferred = target.size();
  Whole others;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == Whole{-1}) {
      if (inferred < target.size()) return Refuse("its shape leaves two dimensions open");
      inferred = i;
      continue;
    }
    if (target[i] == Whole{0} && !allow_zero && i < from.size()) target[i] = from[i];
    const auto product = Product(others, target[i]);
    if (!product) return Refuse("its shape is too large");
    others = *product;
  }
  if (inferred < target.size()) {
    const auto rest = total ? Quotient(*total, others) : std::nullopt;
    if (!rest) return Refuse("the shape ", Text(from), " does not become ", Text(target));
    target[inferred] = *rest;
  }
  return target;
}

StatusOr<Form> Walk::InterpretReshape() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t allow_zero, IntAttribute(node(), "allowzero", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes given, WholesOf(1, "shape"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes target, TargetShape(*ShapeOf(Input(0)), given, allow_zero != 0));
  return Rearrange([&](const View& view) { return Reshaped(view, target); });
}

StatusOr<Form> Walk::InterpretFlatten() {
  const Wholes shape = *ShapeOf(Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, FlattenAxis(node(), static_cast<int64_t>(shape.size())));
  const auto outer = Product(Wholes(shape.begin(), shape.begin() + axis));
  const auto inner = Product(Wholes(shape.begin() + axis, shape.end()));
  if (!outer || !inner) return Refuse("its shape is too large");
  return Rearrange([&](const View& view) { return Reshaped(view, {*outer, *inner}); });
}

StatusOr<Form> Walk::InterpretTranspose() {
  SWIZZLE_ASSIGN_OR_RETURN(const auto perm, PermutationOf(node(), ShapeOf(Input(0))->size()));
  return Rearrange([&](const View& view) { return Transposed(view, perm); });
}

StatusOr<Form> Walk::InterpretSqueeze() {
  const Wholes shape = *ShapeOf(Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(1, static_cast<int64_t>(shape.size())));
  if (!axes && !std::all_of(shape.begin(), shape.end(), [](const Whole& size) { return size.IsNumber(); })) {
    return Refuse("which dimensions of ", Text(shape), " it leaves depends on their size");
  }
  const auto kept = SqueezedDimensions(shape, axes, [](const Whole& size) { return size.IsOne(); });
  if (!kept.ok()) return Refuse(kept.status().message());
  return Rearrange([&](const View& view) { return Reshaped(view, *kept); });
}

StatusOr<Form> Walk::InterpretUnsqueeze() {
  const Wholes from = *ShapeOf(Input(0));
  int64_t added = 0;
  if (HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto given, IntegersOf(1, "axes"));
    added = static_cast<int64_t>(given.size());
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(const auto given, IntsAttribute(node(), "axes", {}));
    added = static_cast<int64_t>(given.size());
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(1, static_cast<int64_t>(from.size()) + added));
  if (!axes) return Refuse("it has no axes");
  const Wholes shape = UnsqueezedDimensions(from, *axes);
  return Rearrange([&](const View& view) { return Reshaped(view, shape); });
}

StatusOr<Form> Walk::InterpretExpand() {
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes shape, WholesOf(1, "shape"));
  int64_t offset = 0;
  const Known* known = InputAs<Known>(0);
  if (known != nullptr && !known->IsUniform() && IsCountingUp(*known, offset) &&
      known->shape.back() == SizeOf(LengthAxis())) {
    Positions positions;
    positions.offset = offset;
    positions.dtype = known->dtype;
    positions.view.dims.resize(known->shape.size());
    positions.view.dims.back() = LengthAxis();
    forms_[node().inputs[0]] = std::move(positions);
  }
  const Form& form = Input(0);
  const bool same_in_all = std::holds_alternative<Tokens>(form) || std::holds_alternative<Positions>(form);
  return Rearrange([&](const View& view) -> std::optional<View> {
    auto expanded = Expanded(view, shape);
    if (!expanded || !same_in_all || view.Has(AxisKind::kBatch)) return expanded;
    // What is the same for all sequences is there once for each.
    for (Axes& dim : expanded->dims) {
      const bool batch = dim.size() == 1 && dim[0].kind == AxisKind::kRepeat && !BatchAxis().empty() &&
                         dim[0].size == SizeOf(BatchAxis());
      if (!batch) continue;
      dim = BatchAxis();
      break;
    }
    return expanded;
  });
}

StatusOr<Form> Walk::InterpretConstantOfShape() {
  Known known{DType::kFloat32, {}, {Number()}};
  SWIZZLE_ASSIGN_OR_RETURN(known.shape, WholesOf(0, "shape"));
  if (known.shape.size() > kMaxRank) return Refuse("its rank is too high");
  if (const auto value = node().attributes.find("value"); value != node().attributes.end()) {
    const Tensor* tensor = std::get_if<Tensor>(&value->second);
    const auto elements = tensor == nullptr ? std::nullopt : Elements::FromTensor(*tensor);
    if (!elements || elements->scalars.size() != 1) return Refuse("its value is not one number");
    known.dtype = elements->dtype;
    known.numbers = {{elements->scalars[0].real, {elements->scalars[0].whole}}};
  }
  return known;
}

StatusOr<Form> Walk::InterpretRange() {
  constexpr int64_t kMaxCount = int64_t{1} << 16;
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes start, WholesOf(0, "start"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes limit, WholesOf(1, "limit"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes delta, WholesOf(2, "delta"));
  const bool by_one = start.size() == 1 && limit.size() == 1 && delta.size() == 1 && delta[0].IsOne();
  const auto count = by_one ? Difference(limit[0], start[0]) : std::nullopt;
  if (!count || !start[0].IsNumber()) return Refuse("it does not count up from a number in steps of 1");
  const DType dtype = InputAs<Known>(0)->dtype;
  if (!count->IsNumber()) {
    Positions positions;
    positions.offset = start[0].factor;
    positions.dtype = dtype;
    positions.view.dims = {LengthAxis()};
    if (*count == SizeOf(LengthAxis())) return positions;
    if (*count != SizeOf(BatchAxis())) return Refuse("it counts neither sequences nor their positions");
    positions.per_position = 0;
    positions.per_sequence = Whole{1};
    positions.view.dims = {BatchAxis()};
    return positions;
  }
  const int64_t numbers = std::max<int64_t>(count->factor, 0);
  if (numbers > kMaxCount || (numbers_left_ -= numbers) < 0) return Refuse("it is too long");
  Known known{dtype, {{numbers}}, {}};
  for (int64_t i = 0; i < numbers; ++i) known.numbers.push_back({0.0, {start[0].factor + i}});
  return known;
}

StatusOr<Form> Walk::InterpretSlice() {
  Form form = Input(0);
  if (std::holds_alternative<Moment>(form)) {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(form));
    form = std::move(tokens);
  }
  const int64_t rank = static_cast<int64_t>(ShapeOf(form)->size());
  Wholes starts, ends;
  std::vector<int64_t> axes, steps;
  if (HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(starts, WholesOf(1, "starts"));
    SWIZZLE_ASSIGN_OR_RETURN(ends, WholesOf(2, "ends"));
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(const auto given_starts, IntsAttribute(node(), "starts", {}));
    SWIZZLE_ASSIGN_OR_RETURN(const auto given_ends, IntsAttribute(node(), "ends", {}));
    for (int64_t start : given_starts) starts.push_back({start});
    for (int64_t end : given_ends) ends.push_back({end});
  }
  axes.resize(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  SWIZZLE_ASSIGN_OR_RETURN(axes, IntsAttribute(node(), "axes", axes));
  if (HasInput(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, IntegersOf(3, "axes"));
  }
  if (HasInput(4)) {
    SWIZZLE_ASSIGN_OR_RETURN(steps, IntegersOf(4, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size())
    return Refuse("its starts and ends differ in number");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) {
    return Refuse("its steps are not 1");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return Refuse("its axis ", axes[i], " is out of range");
    SWIZZLE_ASSIGN_OR_RETURN(form, SliceAxis(form, axis, starts[i], ends[i]));
  }
  return form;
}

StatusOr<Form> Walk::SliceAxis(const Form& form, int64_t axis, const Whole& start, const Whole& end) {
  const Wholes shape = *ShapeOf(form);
  const auto* tokens = std::get_if<Tokens>(&form);
  const bool to_the_end = end == shape[axis] || (end.IsNumber() && end.factor >= kToTheEnd);
  if (tokens != nullptr && tokens->view.Is(axis, AxisKind::kLength) && start == Whole{-1} && to_the_end) {
    return SelectTokenOf(*tokens, axis, -1, true);
  }
  const auto taken = TakenOf(shape[axis], start, end);
  if (!taken) return Refuse("what it takes of ", Text(shape), " depends on the batch or the length");
  if (taken->start == Whole{0} && taken->count == shape[axis]) return form;
  if (const auto* known = std::get_if<Known>(&form)) {
    if (!taken->start.IsNumber()) return Refuse("its start depends on the batch or the length");
    if (!known->IsUniform()) return SliceConstant(*known, axis, taken->start.factor, taken->count);
    Known sliced = *known;
    sliced.constant = kNoValue;
    sliced.shape[axis] = taken->count;
    return sliced;
  }
  if (tokens == nullptr) return Refuse("it takes only a part of what is not an activation");
  if (tokens->view.Is(axis, AxisKind::kLength) && taken->start == Whole{0} && taken->count.IsOne()) {
    return SelectTokenOf(*tokens, axis, 0, true);
  }
  if (!tokens->view.Is(axis, AxisKind::kChannels) || !taken->start.IsNumber() || !taken->count.IsNumber()) {
    return Refuse("it takes a part of ", Text(shape), " that is neither of the channels nor one token");
  }
  Tokens sliced = *tokens;
  Axis channels = sliced.view.dims[axis][0];
  if (taken->count.factor < 1) return Refuse("it takes nothing");
  sliced.view.first_channel += taken->start.factor * channels.stride;
  channels.size = taken->count;
  sliced.view.dims[axis] = AsDimension(channels);
  return sliced;
}

// Of [1, most positions] that counts up, or of a table [1, most positions, channels], as many as a sequence has.
StatusOr<Form> Walk::SliceConstant(const Known& known, int64_t axis, int64_t start, const Whole& count) {
  const int64_t rank = static_cast<int64_t>(known.shape.size());
  const bool to_length = count == SizeOf(LengthAxis());
  int64_t offset = 0;
  if (to_length && axis == rank - 1 && IsCountingUp(known, offset)) {
    Positions positions;
    positions.offset = offset + start;
    positions.dtype = known.dtype;
    positions.view.dims.resize(rank);
    positions.view.dims.back() = LengthAxis();
    return positions;
  }
  const auto only_last_two = [&] {
    return std::all_of(known.shape.begin(), known.shape.end() - 2, [](const Whole& size) { return size.IsOne(); });
  };
  if (!to_length || rank < 2 || axis != rank - 2 || !only_last_two()) {
    return Refuse("it takes a part of a constant that is no table of positions");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto table, FloatTensor(0, "table"));
  const int64_t rows = table.first[rank - 2], channels = table.first[rank - 1];
  if (start < 0 || start >= rows || channels < 1) return Refuse("its start is out of range");
  Tokens tokens;
  tokens.value = out_.Embedding(kNoValue, Tensor::Floats({rows, channels}, table.second), start);
  tokens.view.dims.resize(rank);
  tokens.view.dims[rank - 2] = LengthAxis();
  tokens.view.dims[rank - 1] = ChannelAxis(channels);
  return tokens;
}

StatusOr<Form> Walk::InterpretSplit() {
  const Form form = Input(0);
  const Wholes shape = *ShapeOf(form);
  const int64_t rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node(), axis, rank));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> parts, IntsAttribute(node(), "split", {}));
  if (HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(parts, IntegersOf(1, "split"));
  }
  const int64_t outputs = static_cast<int64_t>(node().outputs.size());
  if (!shape[axis].IsNumber()) return Refuse("it splits ", Text(shape), " along the batch or the length");
  const auto lengths = PartLengths(std::move(parts), shape[axis].factor, outputs);
  if (!lengths.ok()) return Refuse(lengths.status().message());
  Form first = Unknown{};
  int64_t start = 0;
  for (int64_t i = 0; i < outputs; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(Form part, SliceAxis(form, axis, Whole{start}, Whole{start + (*lengths)[i]}));
    start += (*lengths)[i];
    if (i == 0) {
      first = std::move(part);
    } else {
      SetOther(static_cast<size_t>(i), std::move(part));
    }
  }
  return first;
}

// Of places in the batch and in the sequence, for GatherND.
StatusOr<Form> Walk::InterpretConcat() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node(), "axis", 0));
  const auto* rows = InputAs<Positions>(0);
  const auto* places = node().inputs.size() == 2 ? InputAs<Positions>(1) : nullptr;
  if (rows == nullptr || places == nullptr) return Refuse("it joins what is not known beforehand");
  const auto view = Broadcast(rows->view, places->view);
  const bool counts = rows->has_values && places->has_values && !rows->is_pair && !places->is_pair &&
                      rows->offset == 0 && places->offset == 0 && rows->per_position == 0 &&
                      rows->per_sequence.IsOne() && places->per_position == 1 && places->per_sequence == Whole{0};
  if (!counts || !view || view->dims.empty() || !view->dims.back().empty() ||
      (axis != -1 && axis != static_cast<int64_t>(view->rank()) - 1)) {
    return Refuse("it joins what are not the places of tokens");
  }
  Positions pair = *rows;
  pair.is_pair = true;
  pair.view = *view;
  pair.view.dims.back() = {{AxisKind::kRepeat, Whole{2}}};
  return pair;
}

// Elements that are all the same are so wherever they are taken from.
StatusOr<Form> Walk::InterpretGatherElements() {
  const auto* data = InputAs<Known>(0);
  if (data == nullptr || !data->IsUniform()) return Refuse("it takes elements that are not all the same");
  Known taken = *data;
  taken.constant = kNoValue;
  taken.shape = *ShapeOf(Input(1));
  return taken;
}

StatusOr<Form> Walk::InterpretGatherND() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch_dims, IntAttribute(node(), "batch_dims", 0));
  const auto* numbers = InputAs<TokenNumbers>(0);
  const auto* places = InputAs<Positions>(1);
  const View tokens{{BatchAxis(), LengthAxis()}};
  if (batch_dims != 0 || numbers == nullptr || numbers->view != tokens || places == nullptr || !places->is_pair) {
    return Refuse("it does not take an input's tokens by their places");
  }
  TokenNumbers taken = *numbers;
  taken.view = places->view;
  taken.view.dims.pop_back();
  return taken;
}

}  // namespace swizzle
