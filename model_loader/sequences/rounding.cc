#include "model_loader/sequences/rounding.h"

#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle::sequences {
namespace {

// Of inputs 1 and 2, which are one scale and its zero point.
StatusOr<Quantisation> GivenScale(Context& context, DType dtype) {
  const Known* const scales = context.InputAs<Known>(1);
  const Known* const zero_points = context.InputAs<Known>(2);
  if (scales == nullptr || scales->constant == kNoValue ||
      (context.HasInput(2) && (zero_points == nullptr || zero_points->constant == kNoValue))) {
    return context.Refuse("its scale or zero point is not a constant");
  }
  const Tensor* const zeros = zero_points == nullptr ? nullptr : &context.Constant(zero_points->constant);
  auto quantisation =
      QuantisationOf(context.Constant(scales->constant), zeros, zeros == nullptr ? dtype : zeros->dtype);
  if (!quantisation.ok()) return Annotate(quantisation.status(), Describe(context.node()));
  if (quantisation->per_tensor()) return quantisation;
  return context.Refuse("it quantises an activation by channels; only one scale is supported");
}

// What has not been changed since it was quantised.
bool IsFresh(const Tokens& tokens) {
  return tokens.rounding && tokens.rounding->value == tokens.value && tokens.rounding->samples == tokens.samples;
}

// Ids and places are none.
bool IsReal(const Form& form) {
  if (const auto* numbers = std::get_if<TokenNumbers>(&form)) return IsFloating(numbers->dtype);
  if (const auto* known = std::get_if<Known>(&form)) return IsFloating(known->dtype);
  return !std::holds_alternative<Positions>(form);
}

}  // namespace

StatusOr<Form> InterpretQuantizeLinear(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, GivenScale(context, DType::kUint8));
  Form form = context.Input(0);
  if (!IsReal(form)) return context.Refuse("it quantises what is no real number");
  if (auto* const tokens = std::get_if<Tokens>(&form))
    tokens->rounding = {quantisation, tokens->value, tokens->samples};
  return form;
}

StatusOr<Form> InterpretDequantizeLinear(Context& context) {
  const Form& form = context.Input(0);
  if (!IsReal(form)) return context.Refuse("its input was not quantised by the model");
  const auto* const tokens = std::get_if<Tokens>(&form);
  if (tokens == nullptr) return form;
  if (!IsFresh(*tokens)) return context.Refuse("its input was not quantised by the model");
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, GivenScale(context, tokens->rounding->as.dtype));
  if (quantisation == tokens->rounding->as) return form;
  return context.Refuse("its input was quantised with another scale or zero point");
}

std::optional<Quantisation> RoundingOf(Context& context, size_t i) {
  const auto* const tokens = context.InputAs<Tokens>(i);
  if (tokens == nullptr || !IsFresh(*tokens)) return std::nullopt;
  return tokens->rounding->as;
}

}  // namespace swizzle::sequences
