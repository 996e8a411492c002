#include "model_loader/sequences/parts.h"

#include <algorithm>
#include <limits>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/embeddings.h"
#include "model_loader/sequences/ends.h"
#include "model_loader/sequences/folding.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/mixtures.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/pools.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int32_t>::max();  // exporters' "all of it"

// What a slice takes of a dimension: from `start`, so many.
struct Taken {
  Whole start;
  Whole count;
};

// Nothing where that depends on the batch or the length.
std::optional<Taken> TakenOf(const Whole& size, Whole start, Whole end) {
  if (size.factor < 0) return std::nullopt;
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

// Of [1, most positions] that counts up, or of a table [1, most positions, channels], as many as a sequence has.
StatusOr<Form> SliceConstant(Context& context, const Known& known, int64_t axis, int64_t start, const Whole& count) {
  const int64_t rank = static_cast<int64_t>(known.shape.size());
  const bool to_length = count == SizeOf(context.LengthAxis());
  int64_t offset = 0;
  if (to_length && axis == rank - 1 && IsCountingUp(known, offset)) {
    Positions positions;
    positions.offset = offset + start;
    positions.dtype = known.dtype;
    positions.view.dims.resize(rank);
    positions.view.dims.back() = context.LengthAxis();
    return positions;
  }
  if (to_length && start == 0) {
    if (const auto distances = DistancesOfTable(context, known)) {
      return SliceAxis(context, *distances, axis, Whole{0}, count);
    }
  }
  const auto only_last_two = [&] {
    return std::all_of(known.shape.begin(), known.shape.end() - 2, [](const Whole& size) { return size.IsOne(); });
  };
  if (!to_length || rank < 2 || axis != rank - 2 || !only_last_two()) {
    return context.Refuse("it takes a part of a constant that is no table of positions");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto table, FloatTensor(context, 0, "table"));
  const int64_t rows = table.first[rank - 2], channels = table.first[rank - 1];
  if (start < 0 || start >= rows || channels < 1) return context.Refuse("its start is out of range");
  Tokens tokens;
  tokens.value = context.out().Embedding(kNoValue, Tensor::Floats({rows, channels}, table.second), start);
  tokens.view.dims.resize(rank);
  tokens.view.dims[rank - 2] = context.LengthAxis();
  tokens.view.dims[rank - 1] = ChannelAxis(channels);
  return tokens;
}

// Whether it is of channels that a view takes apart.
bool HasChannels(const Form& form) {
  return std::holds_alternative<Tokens>(form) || std::holds_alternative<Mixture>(form) ||
         std::holds_alternative<PositionNumbers>(form);
}

// Every so manieth of the channels of one dimension, from the first on.
StatusOr<Form> EveryOf(Context& context, Form form, int64_t axis, int64_t step) {
  if (step == 1) return form;
  View* const view = HasChannels(form) ? ViewOf(form) : nullptr;
  if (view == nullptr || step < 1 || !view->Is(axis, AxisKind::kChannels)) {
    return context.Refuse("its steps are not 1, and not of channels");
  }
  Axis channels = view->dims[axis][0];
  channels.size.factor = (channels.size.factor - 1) / step + 1;
  if (channels.size.factor > 1) channels.stride *= step;
  view->dims[axis] = AsDimension(channels);
  return form;
}

// Slice's arguments among the forms.
struct KnownArguments {
  using Place = Whole;
  Context& context;

  bool Has(size_t i) const { return context.HasInput(i); }
  StatusOr<Wholes> Places(size_t i, const char* what) const { return WholesOf(context, i, what); }
  StatusOr<std::vector<int64_t>> Integers(size_t i, const char* what) const { return IntegersOf(context, i, what); }
  Status Named(const Status& status) const { return Annotate(status, Describe(context.node())); }
};

}  // namespace

StatusOr<Form> SliceAxis(Context& context, const Form& form, int64_t axis, const Whole& start, const Whole& end) {
  const Wholes shape = *ShapeOf(form);
  const auto* tokens = std::get_if<Tokens>(&form);
  const bool to_the_end = end == shape[axis] || (end.IsNumber() && end.factor >= kToTheEnd);
  if (tokens != nullptr && tokens->view.Is(axis, AxisKind::kLength) && start == Whole{-1} && to_the_end) {
    return SelectTokenOf(context, *tokens, axis, -1, true);
  }
  const auto taken = TakenOf(shape[axis], start, end);
  if (!taken) return context.Refuse("what it takes of ", Text(shape), " depends on the batch or the length");
  if (taken->start == Whole{0} && taken->count == shape[axis]) return form;
  const bool of_one = tokens != nullptr && taken->count.IsOne() && tokens->view.Is(axis, AxisKind::kLength);
  if (taken->start.IsNumber() && taken->count.IsNumber() && taken->count.factor > 0 && !of_one) {
    auto part = SlicePlaces(form, static_cast<size_t>(axis), taken->start.factor, taken->count.factor);
    if (part) return *std::move(part);
  }
  if (const auto* moved = std::get_if<MovedTokens>(&form)) {
    if (auto mixture = MixtureOfPart(context, *moved)) return SliceAxis(context, *std::move(mixture), axis, start, end);
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens settled, Settled(context, *moved));
    return SliceAxis(context, settled, axis, start, end);
  }
  if (const auto* known = std::get_if<Known>(&form)) {
    if (!taken->start.IsNumber()) return context.Refuse("its start depends on the batch or the length");
    if (!known->IsUniform()) return SliceConstant(context, *known, axis, taken->start.factor, taken->count);
    Known sliced = *known;
    sliced.constant = kNoValue;
    sliced.shape[axis] = taken->count;
    return sliced;
  }
  if (const auto* distances = std::get_if<Distances>(&form)) {
    const Axes& dim = distances->view.dims[axis];
    const bool of_places = distances->view.Is(axis, AxisKind::kLength) || distances->view.Is(axis, AxisKind::kKeys);
    if (!of_places || taken->start != Whole{0} || taken->count != SizeOf(context.LengthAxis())) {
      return context.Refuse("it takes a part of numbers by distance that is not a sequence's");
    }
    Distances sliced = *distances;
    sliced.view.dims[axis] = AsDimension({dim[0].kind, taken->count});
    return sliced;
  }
  if (!HasChannels(form)) return context.Refuse("it takes only a part of what is not an activation");
  Form sliced = form;
  View& view = *ViewOf(sliced);
  const bool of_any = taken->start == Whole{0} || (taken->start.IsNumber() && shape[axis].IsNumber());
  if (tokens != nullptr && view.Is(axis, AxisKind::kLength) && of_any && taken->count.IsOne()) {
    return SelectTokenOf(context, *tokens, axis, taken->start.factor, true);
  }
  if (!view.Is(axis, AxisKind::kChannels) || !taken->start.IsNumber() || !taken->count.IsNumber()) {
    return context.Refuse("it takes a part of ", Text(shape), " that is neither of the channels nor one token");
  }
  Axis channels = view.dims[axis][0];
  if (taken->count.factor < 1) return context.Refuse("it takes nothing");
  view.first_channel += taken->start.factor * channels.stride;
  channels.size = taken->count;
  view.dims[axis] = AsDimension(channels);
  return sliced;
}

StatusOr<Form> InterpretSlice(Context& context) {
  Form form = context.Input(0);
  if (std::holds_alternative<Moment>(form)) {
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, form));
    form = std::move(tokens);
  }
  const int64_t rank = static_cast<int64_t>(ShapeOf(form)->size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto slice, SliceArgumentsOf(context.node(), rank, KnownArguments{context}));
  for (size_t i = 0; i < slice.axes.size(); ++i) {
    const int64_t step = slice.steps.empty() ? 1 : slice.steps[i];
    if (step < 1) return context.Refuse("its step is ", step);
    SWIZZLE_ASSIGN_OR_RETURN(form, SliceAxis(context, form, slice.axes[i], slice.starts[i], slice.ends[i]));
    SWIZZLE_ASSIGN_OR_RETURN(form, EveryOf(context, std::move(form), slice.axes[i], step));
  }
  return form;
}

StatusOr<Form> InterpretSplit(Context& context) {
  const Form form = context.Input(0);
  const Wholes shape = *ShapeOf(form);
  const int64_t rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(context.node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(context.node(), axis, rank));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> parts, IntsAttribute(context.node(), "split", {}));
  if (context.HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(parts, IntegersOf(context, 1, "split"));
  }
  const int64_t outputs = static_cast<int64_t>(context.node().outputs.size());
  if (!shape[axis].IsNumber()) return context.Refuse("it splits ", Text(shape), " along the batch or the length");
  const auto lengths = PartLengths(std::move(parts), shape[axis].factor, outputs);
  if (!lengths.ok()) return context.Refuse(lengths.status().message());
  Form first = Unknown{};
  int64_t start = 0;
  for (int64_t i = 0; i < outputs; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(Form part, SliceAxis(context, form, axis, Whole{start}, Whole{start + (*lengths)[i]}));
    start += (*lengths)[i];
    if (i == 0) {
      first = std::move(part);
    } else {
      context.SetOther(static_cast<size_t>(i), std::move(part));
    }
  }
  return first;
}

StatusOr<Form> InterpretGather(Context& context) {
  const Wholes shape = *ShapeOf(context.Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(context.node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(context.node(), axis, static_cast<int64_t>(shape.size())));
  if (context.InputAs<EndPlaces>(1) != nullptr) return TakeAtEnds(context, axis);
  if (const auto* data = context.InputAs<Known>(0)) {
    const Form indices = context.Input(1);
    const auto* distances = std::get_if<Distances>(&indices);
    if (distances != nullptr && IsFloating(data->dtype) && shape.size() == 2 && axis == 0) {
      return GatherByDistance(context, *distances);
    }
    const auto* listed = std::get_if<Known>(&indices);
    const bool of_pairs = listed != nullptr && listed->shape.size() > 1 && !listed->IsUniform();
    if (of_pairs && IsFloating(data->dtype) && axis == 0) {
      auto taken = EvaluateConstants(context);
      if (taken.ok()) return taken;
    }
    if (IsFloating(data->dtype) && shape.size() == 2 && axis == 0) return EmbeddingOf(context, 0, indices);
    if (!std::holds_alternative<Known>(indices)) return context.Refuse("it looks up what is no table of embeddings");
    return data->numbers.empty() ? EvaluateConstants(context) : MoveKnown(context);
  }
  const auto* numbers = context.InputAs<TokenNumbers>(0);
  const auto* places = context.InputAs<Positions>(1);
  if (numbers != nullptr && places != nullptr) {  // of all tokens in one dimension
    Axes tokens = context.BatchAxis();
    for (const Axis& length : context.LengthAxis()) tokens.push_back(length);
    View flat = numbers->view;
    flat.dims.resize(1);
    const bool each = places->has_values && !places->is_pair && places->offset == 0 && places->per_position == 1 &&
                      places->per_sequence == SizeOf(context.LengthAxis()) && axis == 0 && flat == View{{tokens}} &&
                      SizeOf(numbers->view.AllAxes()) == SizeOf(tokens);
    if (!each) return context.Refuse("it does not take an input's tokens by their places");
    TokenNumbers taken = *numbers;
    taken.view = places->view;
    taken.view.dims.resize(places->view.rank() + numbers->view.rank() - 1);
    return taken;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(context, context.Input(0)));
  const auto* indices = context.InputAs<Known>(1);
  const auto index = indices != nullptr ? IntegerOf(*indices) : std::nullopt;
  if (!index || (!indices->shape.empty() && indices->shape != Wholes{{1}})) {
    return context.Refuse("it takes several parts of an activation");
  }
  const bool keep = !indices->shape.empty();
  int64_t at = *index;
  const bool of_tokens = tokens.view.Is(axis, AxisKind::kLength);
  if (of_tokens && (at == 0 || at == -1)) return SelectTokenOf(context, tokens, axis, at, keep);
  const Whole size = shape[axis];
  if (!size.IsNumber() || at < -size.factor || at >= size.factor)
    return context.Refuse("its index ", at, " is out of range");
  if (at < 0) at += size.factor;
  if (of_tokens) return SelectTokenOf(context, tokens, axis, at, keep);
  SWIZZLE_ASSIGN_OR_RETURN(Form part, SliceAxis(context, tokens, axis, Whole{at}, Whole{at + 1}));
  View& view = *ViewOf(part);
  if (!keep) view.dims.erase(view.dims.begin() + axis);
  return part;
}

}  // namespace swizzle::sequences
