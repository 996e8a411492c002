#include "model_loader/sequences/ends.h"

#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
namespace {

using Kind = EndPlaces::Kind;

// Whether they count the sequences of the batch, in steps of `step`, and lie as the places do.
bool CountSequences(const Positions& positions, const Whole& step) {
  return positions.has_values && !positions.is_pair && positions.offset == 0 && positions.per_position == 0 &&
         positions.per_sequence == step;
}

// The sequences as the only dimension that has more than one element.
bool IsOfBatch(Context& context, const View& view, size_t axis) {
  for (size_t i = 0; i < view.rank(); ++i) {
    if (view.dims[i] != (i == axis ? context.BatchAxis() : Axes())) return false;
  }
  return axis < view.rank();
}

StatusOr<Form> EndToken(Context& context, const Tokens& tokens, const EndPlaces& places, View view) {
  const Status ends = context.facts().EndAt(places.input, places.at_largest, places.number);
  if (!ends.ok()) return context.Refuse(ends.message());
  SWIZZLE_ASSIGN_OR_RETURN(Tokens taken, Contiguous(context, tokens));
  taken.value = context.out().SelectToken(taken.value, -1);
  taken.view = std::move(view);
  return taken;
}

}  // namespace

StatusOr<Form> InterpretArgMax(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(context.node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t last, IntAttribute(context.node(), "select_last_index", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(context.node()));
  const auto* numbers = context.InputAs<TokenNumbers>(0);
  if (numbers == nullptr || last != 0) return context.Refuse("it does not find the first of an input's numbers");
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(context.node(), axis, static_cast<int64_t>(numbers->view.rank())));
  const View tokens{{context.BatchAxis(), context.LengthAxis()}};
  if (numbers->view != tokens || axis != 1) return context.Refuse("it is not over the tokens of each sequence");
  EndPlaces places;
  places.input = numbers->input;
  places.at_largest = numbers->as_it_is;
  const bool finds_one = numbers->compared && numbers->compared->at_equal > numbers->compared->at_other;
  if (!places.at_largest && !finds_one) return context.Refuse("it is over what is no input as it is, or one number");
  if (!places.at_largest) places.number = numbers->compared->number;
  places.view.dims = {context.BatchAxis()};
  if (keep) places.view.dims.emplace_back();
  return places;
}

StatusOr<Form> CombineEndPlaces(Context& context) {
  const std::string& op = context.node().op;
  const size_t at = context.InputAs<EndPlaces>(0) != nullptr ? 0 : 1;
  if (context.InputAs<EndPlaces>(at) == nullptr) return context.Refuse("it chooses among places of tokens");
  EndPlaces places = *context.InputAs<EndPlaces>(at);
  const DType target = PointFunctionType(context.node(), places.dtype);
  if (op == "Cast" && (target == DType::kInt32 || target == DType::kInt64)) {
    places.dtype = target;
    return places;
  }
  const auto* rows = context.node().inputs.size() == 2 ? context.InputAs<Positions>(1 - at) : nullptr;
  const bool goes_on = op == "Add" && places.kind == Kind::kInSequence && rows != nullptr &&
                       rows->view == places.view && CountSequences(*rows, SizeOf(context.LengthAxis()));
  if (!goes_on) return context.Refuse("it makes something else of places of tokens");
  places.kind = Kind::kInBatch;
  return places;
}

StatusOr<Form> JoinEndPlaces(Context& context, size_t axis) {
  const bool two = context.node().inputs.size() == 2;
  const auto* rows = two ? context.InputAs<Positions>(0) : nullptr;
  const auto* found = two ? context.InputAs<EndPlaces>(1) : nullptr;
  const bool fits = rows != nullptr && found != nullptr && found->kind == Kind::kInSequence && axis == 1 &&
                    CountSequences(*rows, Whole{1}) && rows->view == found->view && found->view.rank() == 2 &&
                    IsOfBatch(context, found->view, 0);
  if (!fits) return context.Refuse("it joins what are not the places of tokens");
  EndPlaces pair = *found;
  pair.kind = Kind::kPair;
  pair.view.dims.back() = {{AxisKind::kRepeat, Whole{2}}};
  return pair;
}

StatusOr<Form> TakeAtEnds(Context& context, int64_t axis) {
  const EndPlaces places = *context.InputAs<EndPlaces>(1);
  const std::string& op = context.node().op;
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(context, context.Input(0)));
  const View& view = tokens.view;
  View taken = view;
  Axes all = context.BatchAxis();
  for (const Axis& length : context.LengthAxis()) all.push_back(length);
  if (op == "Gather" && places.kind == Kind::kInBatch && axis == 0 && view.rank() == 2 && view.dims[0] == all &&
      IsOfChannels(view.dims[1]) && places.view == View{{context.BatchAxis()}}) {
    taken.dims[0] = context.BatchAxis();
    return EndToken(context, tokens, places, std::move(taken));
  }
  const bool of_sequences = view.rank() == 3 && view.dims[0] == context.BatchAxis() &&
                            view.dims[1] == context.LengthAxis() && IsOfChannels(view.dims[2]);
  const View pairs{{context.BatchAxis(), {{AxisKind::kRepeat, Whole{2}}}}};
  if (op == "GatherND" && places.kind == Kind::kPair && places.view == pairs && of_sequences) {
    taken.dims.erase(taken.dims.begin() + 1);
    return EndToken(context, tokens, places, std::move(taken));
  }
  const View& at = places.view;
  const bool of_all_channels = of_sequences && at.rank() == 3 && at.dims[0] == context.BatchAxis() &&
                               at.dims[1].empty() && IsRepeated(at.dims[2]) &&
                               SizeOf(at.dims[2]) == SizeOf(view.dims.back());
  if (op == "GatherElements" && places.kind == Kind::kInSequence && axis == 1 && of_sequences && of_all_channels) {
    taken.dims[1].clear();
    return EndToken(context, tokens, places, std::move(taken));
  }
  return context.Refuse("it does not take one token of each sequence");
}

}  // namespace swizzle::sequences
