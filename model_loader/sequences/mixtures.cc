#include "model_loader/sequences/mixtures.h"

#include <cmath>
#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/interpret.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/position_numbers.h"

namespace swizzle::sequences {
namespace {

using Sums = Mixture::Sums;

Mixture Of(int value, Sums sums, View view, int64_t first_place) {
  return {value, std::make_shared<const Sums>(std::move(sums)), std::move(view), first_place};
}

Mixture Ordered(const Mixture& mixture) {
  OrderedChannels ordered = InOrder(mixture.view);
  Sums sums;
  for (const int64_t channel : ordered.channels) sums.push_back((*mixture.sums)[static_cast<size_t>(channel)]);
  return Of(mixture.value, std::move(sums), std::move(ordered.view), mixture.first_place);
}

// Each channel by itself. REQUIRES: no function is left to apply.
Mixture OfChannels(const Tokens& tokens, double factor, int64_t first_place) {
  OrderedChannels ordered = InOrder(tokens.view);
  Sums sums;
  for (const int64_t channel : ordered.channels) sums.push_back({{.channel = channel, .factor = factor}});
  return Of(tokens.value, std::move(sums), std::move(ordered.view), first_place);
}

bool AreOfOne(const Mixture& a, const Mixture& b) { return a.value == b.value && a.first_place == b.first_place; }

// With its channels in order.
StatusOr<Mixture> AsMixture(Context& context, const Form& form) {
  if (const auto* mixture = std::get_if<Mixture>(&form)) return Ordered(*mixture);
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens whole, AsTokens(context, form));
  SWIZZLE_ASSIGN_OR_RETURN(const auto factored, WithoutFactor(context, whole));
  const auto& [tokens, factor] = factored;
  if (!context.out().IsPerToken(tokens.value)) return context.Refuse("it turns what is not of tokens");
  return OfChannels(tokens, factor, 0);
}

Mixture Scaled(Mixture mixture, double factor) {
  Sums sums = *mixture.sums;
  for (auto& sum : sums) {
    for (Mixture::Term& term : sum) term.factor *= factor;
  }
  mixture.sums = std::make_shared<const Sums>(std::move(sums));
  return mixture;
}

StatusOr<Form> SumOf(Context& context, const Mixture& a, const Mixture& b) {
  const auto paired = PairInOrder(a.view, b.view);
  if (!AreOfOne(a, b) || !paired) return context.Refuse("it sums channels of several activations");
  constexpr size_t kMostTerms = 8;
  Sums sums;
  for (const auto& [left, right] : paired->channels) {
    auto& sum = sums.emplace_back((*a.sums)[static_cast<size_t>(left)]);
    const auto& other = (*b.sums)[static_cast<size_t>(right)];
    sum.insert(sum.end(), other.begin(), other.end());
    if (sum.size() > kMostTerms) return context.Refuse("it sums more channels than a rotary embedding does");
  }
  return Of(a.value, std::move(sums), paired->view, a.first_place);
}

StatusOr<Form> ProductOf(Context& context, const Mixture& mixture, const PositionNumbers& numbers) {
  const auto paired = PairInOrder(mixture.view, numbers.view);
  if (!paired) return context.Refuse("its inputs do not go together");
  Sums sums;
  for (const auto& [channel, column] : paired->channels) {
    auto& sum = sums.emplace_back((*mixture.sums)[static_cast<size_t>(channel)]);
    for (Mixture::Term& term : sum) {
      if (term.by) return context.Refuse("it turns an activation twice");
      term.by = (*numbers.columns)[static_cast<size_t>(column)];
    }
  }
  return Of(mixture.value, std::move(sums), paired->view, mixture.first_place);
}

// What the operator makes of mixtures as long as they stay such.
StatusOr<Form> Mixed(Context& context) {
  const std::string& op = context.node().op;
  if (op == "Neg") {
    SWIZZLE_ASSIGN_OR_RETURN(const Mixture mixture, AsMixture(context, context.Input(0)));
    return Scaled(mixture, -1.0);
  }
  if (context.node().inputs.size() != 2) return context.Refuse("it makes something else of a rotary embedding's parts");
  for (const size_t i : {0, 1}) {
    const auto number = NumberOf(context, i);
    if (!number || (op != "Mul" && !(op == "Div" && i == 1))) continue;
    const double factor = op == "Mul" ? *number : 1.0 / *number;
    if (!std::isfinite(factor) || factor == 0.0) return context.Refuse("it multiplies by ", factor);
    SWIZZLE_ASSIGN_OR_RETURN(const Mixture mixture, AsMixture(context, context.Input(1 - i)));
    const auto view = Expanded(mixture.view, context.InputAs<Known>(i)->shape);
    if (!view || view->shape() != mixture.view.shape()) return context.Refuse("it repeats an activation");
    return Scaled(mixture, factor);
  }
  if (op == "Mul") {
    const bool is_first = context.InputAs<Mixture>(0) != nullptr || context.InputAs<PositionNumbers>(1) != nullptr;
    const size_t at = is_first ? 0 : 1;
    return TimesPositions(context, context.Input(at), 1 - at);
  }
  if ((op != "Add" && op != "Sub") || context.AnyInputIs<PositionNumbers>()) {
    return context.Refuse("it makes something else of a rotary embedding's parts");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Mixture a, AsMixture(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(const Mixture b, AsMixture(context, context.Input(1)));
  return SumOf(context, a, op == "Add" ? b : Scaled(b, -1.0));
}

}  // namespace

StatusOr<Form> TimesPositions(Context& context, const Form& form, size_t input) {
  SWIZZLE_ASSIGN_OR_RETURN(const Mixture mixture, AsMixture(context, form));
  const auto* known = context.InputAs<Known>(input);
  SWIZZLE_ASSIGN_OR_RETURN(const PositionNumbers numbers,
                           known != nullptr ? NumbersOfLength(context, *known, mixture.view, mixture.first_place)
                                            : AsPositionNumbers(context, context.Input(input)));
  return ProductOf(context, mixture, numbers);
}

std::optional<Mixture> MixtureOfPart(Context& context, const MovedTokens& part) {
  const std::vector<int32_t> rows = RowsOf(part);
  const View& view = part.tokens.view;
  size_t places = 0;
  for (size_t i = 0; i < view.rank(); ++i) places += view.Is(i, AxisKind::kPlaces) ? 1 : 0;
  const bool is_part = !rows.empty() && std::ssize(rows) < context.FixedLength() && places == 1;
  for (size_t i = 0; is_part && i < rows.size(); ++i) {
    if (rows[i] != rows[0] + static_cast<int32_t>(i)) return std::nullopt;
  }
  const auto factored = WithoutFactor(context, part.tokens);
  if (!is_part || !factored.ok()) return std::nullopt;
  return OfChannels(factored->first, factored->second, rows[0]);
}

void MixPartInputs(Context& context) {
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto* part = context.InputAs<MovedTokens>(i);
    auto mixture = part == nullptr ? std::nullopt : MixtureOfPart(context, *part);
    if (mixture) context.ReplaceInput(i, *std::move(mixture));
  }
}

StatusOr<Form> JoinTurned(Context& context, size_t axis) {
  const auto* first = context.InputAs<MovedTokens>(0);
  const auto kept = first == nullptr ? std::nullopt : MixtureOfPart(context, *first);
  const auto* second = context.node().inputs.size() == 2 ? context.InputAs<Mixture>(1) : nullptr;
  if (!kept || second == nullptr) return context.Refuse("it joins other than tokens that stay with those behind them");
  const Mixture turned = Ordered(*second);
  View view = kept->view;
  const bool lie_so = axis < view.rank() && view.Is(axis, AxisKind::kPlaces) && turned.view.rank() == view.rank() &&
                      turned.view.Is(axis, AxisKind::kPlaces);
  const int64_t before = lie_so ? view.dims[axis][0].size.factor : 0;
  if (lie_so) view.dims[axis] = turned.view.dims[axis];
  const bool are_all = lie_so && view == turned.view && kept->value == turned.value && kept->first_place == 0 &&
                       turned.first_place == before && before + view.dims[axis][0].size.factor == context.FixedLength();
  if (!are_all) return context.Refuse("it joins other than tokens that stay with those behind them");
  Sums sums = *turned.sums;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Mixture::Term own = (*kept->sums)[i][0];
    bool has_own = false;
    for (Mixture::Term& term : sums[i]) {
      const double factor = term.by ? term.factor * term.by->factor : 0.0;
      if (factor == 0.0) return context.Refuse("it joins tokens that stay with others that are not turned");
      const bool is_own = term.channel == own.channel && !has_own;
      term.by->from = before;
      term.by->before = is_own ? static_cast<float>(own.factor / factor) : 0.0f;
      has_own = has_own || is_own;
    }
    if (!has_own) return context.Refuse("it joins channels with other channels");
  }
  view.dims[axis] = context.LengthAxis();
  return Of(turned.value, std::move(sums), std::move(view), 0);
}

StatusOr<Form> CombineMixtures(Context& context) {
  if (context.node().op == "Cast" && IsFloating(PointFunctionType(context.node(), DType::kFloat32))) {
    return context.Input(0);
  }
  auto mixed = Mixed(context);
  if (mixed.ok()) return mixed;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (context.InputAs<Mixture>(i) == nullptr && context.InputAs<PositionNumbers>(i) == nullptr) continue;
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, context.Input(i)));
    context.ReplaceInput(i, std::move(tokens));
  }
  return InterpretElementwise(context);
}

StatusOr<Form> ConcatMixtures(Context& context, size_t axis) {
  std::vector<Mixture> parts;
  std::vector<View> views;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(Mixture part, AsMixture(context, context.Input(i)));
    if (i > 0 && !AreOfOne(part, parts[0])) return context.Refuse("it joins channels of several activations");
    views.push_back(part.view);
    parts.push_back(std::move(part));
  }
  const auto joined = JoinInOrder(views, axis);
  if (!joined) return context.Refuse("it does not join channels");
  Sums sums;
  for (const auto& [part, place] : joined->sources) sums.push_back((*parts[part].sums)[static_cast<size_t>(place)]);
  return Of(parts[0].value, std::move(sums), joined->view, parts[0].first_place);
}

}  // namespace swizzle::sequences
