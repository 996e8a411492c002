#include "model_loader/sequences/interpret.h"

#include <algorithm>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/ends.h"
#include "model_loader/sequences/folding.h"
#include "model_loader/sequences/handlers.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/mixtures.h"
#include "model_loader/sequences/moments.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/pair_masks.h"
#include "model_loader/sequences/places.h"
#include "model_loader/sequences/pools.h"
#include "model_loader/sequences/position_numbers.h"
#include "model_loader/sequences/positions.h"
#include "model_loader/sequences/scores.h"
#include "model_loader/sequences/token_counts.h"
#include "model_loader/sequences/token_numbers.h"

namespace swizzle::sequences {
namespace {

// All inputs are the same for every request.
StatusOr<Form> EvaluateKnown(Context& context) {
  constexpr std::string_view kMoves[] = {"Concat", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"};
  const std::string& op = context.node().op;
  if (op == "MatMul" || op == "LayerNormalization") return EvaluateConstants(context);
  const auto is_listed = [&](size_t i) {
    const Known* known = context.InputAs<Known>(i);
    return known == nullptr || known->IsListed();
  };
  bool listed = true, uniform = true;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) listed = listed && is_listed(i);
  if (context.HasInput(0))
    uniform = context.InputAs<Known>(0)->IsUniform() && !AsShape(context.InputAs<Known>(0)->shape);
  const bool moves = std::find(std::begin(kMoves), std::end(kMoves), context.node().op) != std::end(kMoves);
  const auto is_symbolic = [&](size_t i) {
    const Known* known = context.InputAs<Known>(i);
    return known != nullptr && std::any_of(known->numbers.begin(), known->numbers.end(),
                                           [](const Number& number) { return !number.whole.IsNumber(); });
  };
  const bool to_length = context.node().op == "Slice" && (is_symbolic(1) || is_symbolic(2));
  if (moves && listed && !uniform && !to_length) return MoveKnown(context);
  // What is too large to list may be a mask of pairs of tokens.
  const auto or_pairs = [&](StatusOr<Form> result) -> StatusOr<Form> {
    if (result.ok() || result.status().code() != StatusCode::kUnimplemented) return result;
    auto pairs = moves ? MovePairs(context) : CombinePairs(context);
    return pairs.ok() ? pairs : result;
  };
  if (!listed && !moves && PointFunctionOf(context.node(), context.InputAs<Known>(0)->dtype))
    return or_pairs(EvaluateConstants(context));
  if (!listed && moves && !to_length) return or_pairs(EvaluateConstants(context));
  if (const Handler handler = FindHandler(context.node().domain, context.node().op)) return handler(context);
  return or_pairs(ComputeKnown(context));
}

// What is computed of tokens times the mask is computed of the tokens: only a sum over them asks for the mask.
Status ReadMaskedTokens(Context& context) {
  if (context.node().op == "Cast") return {};
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto* masked = context.InputAs<MaskedTokens>(i);
    if (masked == nullptr || masked->summed) continue;
    SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, *masked));
    context.ReplaceInput(i, std::move(tokens));
  }
  return {};
}

}  // namespace

StatusOr<Form> Interpret(Context& context) {
  const Node& node = context.node();
  bool all_known = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!context.HasInput(i)) continue;
    const Form& input = context.Input(i);
    if (const auto* unknown = std::get_if<Unknown>(&input)) return unknown->why;
    all_known = all_known && std::holds_alternative<Known>(input);
  }
  if (all_known) return EvaluateKnown(context);
  constexpr std::string_view kFollowMoves[] = {"Concat", "Flatten", "Pad",     "ReduceMean", "Reshape",
                                               "Shape",  "Slice",   "Squeeze", "Transpose",  "Unsqueeze"};
  if (node.op == "Mul" || node.op == "Neg") MixPartInputs(context);
  if (std::ranges::find(kFollowMoves, node.op) == std::end(kFollowMoves)) {
    const Status settled = SettleInputs(context);
    if (!settled.ok()) return context.Refuse(settled.message());
  }
  if (const Handler handler = FindHandler(node.domain, node.op)) return handler(context);
  return InterpretElementwise(context);
}

StatusOr<Form> InterpretElementwise(Context& context) {
  if (context.node().op == "Where" && context.HasInput(0)) {
    if (const auto condition = NumberOf(context, 0)) return context.Input(*condition != 0 ? 1 : 2);
  }
  const bool known_operator = PointFunctionOf(context.node(), DType::kFloat32).has_value();
  if (!known_operator) return context.Refuse("the operator is supported on numbers known beforehand only");
  if (context.AnyInputIs<EndPlaces>()) return CombineEndPlaces(context);
  if (context.AnyInputIs<Scores>()) return CombineScores(context);
  if (context.AnyInputIs<PlaceProducts>()) return CombinePlaceProducts(context);
  if (context.AnyInputIs<Pairs>()) return CombinePairs(context);
  if (context.AnyInputIs<Distances>()) return CombineDistances(context);
  SWIZZLE_RETURN_IF_ERROR(ReadMaskedTokens(context));
  if (context.AnyInputIs<MaskedTokens>() || context.AnyInputIs<TokenCount>()) return CombinePool(context);
  if (context.AnyInputIs<Moment>()) return CombineMoments(context);
  const bool by_position = context.AnyInputIs<PositionNumbers>();
  if (context.AnyInputIs<Mixture>()) return CombineMixtures(context);
  if (context.AnyInputIs<Tokens>()) return by_position ? CombineMixtures(context) : CombineTokens(context);
  if (by_position) return CombinePositionNumbers(context);
  if (context.AnyInputIs<Positions>()) {
    auto positions = CombinePositions(context);
    if (positions.ok() || positions.status().code() != StatusCode::kUnimplemented) return positions;
    auto numbers = CombinePositionNumbers(context);
    return numbers.ok() ? numbers : positions;
  }
  if (context.AnyInputIs<TokenCounts>()) return CombineTokenCounts(context);
  return CombineTokenNumbers(context);
}

}  // namespace swizzle::sequences
