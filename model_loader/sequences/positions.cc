#include "model_loader/sequences/positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/ends.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/mixtures.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/position_numbers.h"

namespace swizzle::sequences {
namespace {

StatusOr<Form> CombineTwoPositions(Context& context, const Positions& a, const Positions& b) {
  const auto view = Broadcast(a.view, b.view);
  if (!view || a.is_pair || b.is_pair) return context.Refuse("its inputs do not broadcast");
  Positions result = a;
  result.view = *view;
  const auto per_sequence = Sum(a.per_sequence, b.per_sequence);
  constexpr int64_t kMost = 1 << 24;
  const auto small = [](const Positions& positions) {
    return std::abs(positions.offset) <= kMost && std::abs(positions.per_position) <= kMost;
  };
  result.has_values =
      context.node().op == "Add" && a.has_values && b.has_values && per_sequence.has_value() && small(a) && small(b);
  if (!result.has_values) return result;
  result.offset += b.offset;
  result.per_position += b.per_position;
  result.per_sequence = *per_sequence;
  return result;
}

}  // namespace

StatusOr<Form> CombinePositions(Context& context) {
  const std::string& op = context.node().op;
  const bool two = context.node().inputs.size() == 2;
  if (two && context.InputAs<Positions>(0) != nullptr && context.InputAs<Positions>(1) != nullptr) {
    const auto distances =
        DistancesOfPositions(context, *context.InputAs<Positions>(0), *context.InputAs<Positions>(1));
    if (distances) return *distances;
    return CombineTwoPositions(context, *context.InputAs<Positions>(0), *context.InputAs<Positions>(1));
  }
  const size_t at = context.InputAs<Positions>(0) != nullptr ? 0 : 1;
  Positions positions = *context.InputAs<Positions>(at);
  const DType target = PointFunctionType(context.node(), positions.dtype);
  if (op == "Cast" && target != DType::kBool) {
    positions.dtype = target;
    return positions;
  }
  const auto* known = two ? context.InputAs<Known>(1 - at) : nullptr;
  const bool usual = known != nullptr && known->IsUniform() && !IsFloating(known->dtype) &&
                     !IsFloating(positions.dtype) && positions.has_values && !positions.is_pair;
  const auto view = usual ? Broadcast(positions.view, RepeatedView(known->shape)) : std::nullopt;
  if (!view) return context.Refuse("it makes something else of positions");
  positions.view = *view;
  const Whole number = known->numbers[0].whole;
  constexpr int64_t kMaxOffset = 1 << 24;
  const bool small = number.IsNumber() && std::abs(number.factor) <= kMaxOffset;
  if (op == "GreaterOrEqual" && at == 0 && number.IsNumber() && positions.per_position >= 0 &&
      positions.per_sequence.factor >= 0 && positions.offset >= number.factor) {
    return Known{DType::kBool, view->shape(), {{0.0, {1}}}};
  }
  const auto product = Product(positions.per_sequence, number);
  if (op == "Mul" && positions.per_position == 0 && positions.offset == 0 && product) {
    positions.per_sequence = *product;
    return positions;
  }
  const bool moves = small && std::abs(positions.offset) <= kMaxOffset && (op == "Add" || (op == "Sub" && at == 0));
  if (!moves) return context.Refuse("it makes something else of positions");
  positions.offset += op == "Add" ? number.factor : -number.factor;
  return positions;
}

StatusOr<Form> InterpretRange(Context& context) {
  constexpr int64_t kMaxCount = int64_t{1} << 16;
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes start, WholesOf(context, 0, "start"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes limit, WholesOf(context, 1, "limit"));
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes delta, WholesOf(context, 2, "delta"));
  const bool by_one = start.size() == 1 && limit.size() == 1 && delta.size() == 1 && delta[0].IsOne();
  const auto count = by_one ? Difference(limit[0], start[0]) : std::nullopt;
  if (!count || !start[0].IsNumber()) return context.Refuse("it does not count up from a number in steps of 1");
  const DType dtype = context.InputAs<Known>(0)->dtype;
  if (!count->IsNumber()) {
    Positions positions;
    positions.offset = start[0].factor;
    positions.dtype = dtype;
    positions.view.dims = {context.LengthAxis()};
    if (*count == SizeOf(context.LengthAxis())) return positions;
    if (*count != SizeOf(context.BatchAxis())) return context.Refuse("it counts neither sequences nor their positions");
    positions.per_position = 0;
    positions.per_sequence = Whole{1};
    positions.view.dims = {context.BatchAxis()};
    return positions;
  }
  const int64_t numbers = std::max<int64_t>(count->factor, 0);
  if (numbers > kMaxCount || !context.TakeNumbers(numbers)) return context.Refuse("it is too long");
  Known known{dtype, {{numbers}}, {}};
  for (int64_t i = 0; i < numbers; ++i) known.numbers.push_back({0.0, {start[0].factor + i}});
  return known;
}

StatusOr<Form> InterpretConcat(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(context.node(), "axis", 0));
  const auto rank = static_cast<int64_t>(ShapeOf(context.Input(0))->size());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t normal, NormalAxis(context.node(), axis, rank));
  const auto at = static_cast<size_t>(normal);
  if (context.AllInputsAre<Tokens, MovedTokens>() && context.AnyInputIs<MovedTokens>()) {
    auto joined = JoinPlaces(context, at);
    if (joined.ok()) return joined;
    SWIZZLE_RETURN_IF_ERROR(SettleInputs(context));
  }
  if (context.AnyInputIs<MovedTokens>() && context.AnyInputIs<Mixture>()) return JoinTurned(context, at);
  if (context.AllInputsAre<PositionNumbers>()) return ConcatPositionNumbers(context, at);
  if (context.AllInputsAre<Tokens, Moment, Mixture>()) return ConcatMixtures(context, at);
  if (context.AnyInputIs<EndPlaces>()) return JoinEndPlaces(context, at);
  const auto* rows = context.InputAs<Positions>(0);
  const auto* places = context.node().inputs.size() == 2 ? context.InputAs<Positions>(1) : nullptr;
  if (rows == nullptr || places == nullptr) return context.Refuse("it joins what is not known beforehand");
  const auto view = Broadcast(rows->view, places->view);
  const bool counts = rows->has_values && places->has_values && !rows->is_pair && !places->is_pair &&
                      rows->offset == 0 && places->offset == 0 && rows->per_position == 0 &&
                      rows->per_sequence.IsOne() && places->per_position == 1 && places->per_sequence == Whole{0};
  if (!counts || !view || view->dims.empty() || !view->dims.back().empty() || at + 1 != view->rank()) {
    return context.Refuse("it joins what are not the places of tokens");
  }
  Positions pair = *rows;
  pair.is_pair = true;
  pair.view = *view;
  pair.view.dims.back() = {{AxisKind::kRepeat, Whole{2}}};
  return pair;
}

StatusOr<Form> InterpretGatherND(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch_dims, IntAttribute(context.node(), "batch_dims", 0));
  if (batch_dims == 0 && context.InputAs<EndPlaces>(1) != nullptr) return TakeAtEnds(context, 0);
  const auto* numbers = context.InputAs<TokenNumbers>(0);
  const auto* places = context.InputAs<Positions>(1);
  const View tokens{{context.BatchAxis(), context.LengthAxis()}};
  if (batch_dims != 0 || numbers == nullptr || numbers->view != tokens || places == nullptr || !places->is_pair) {
    return context.Refuse("it does not take an input's tokens by their places");
  }
  TokenNumbers taken = *numbers;
  taken.view = places->view;
  taken.view.dims.pop_back();
  return taken;
}

}  // namespace swizzle::sequences
