#include "model_loader/sequences/linear.h"

#include <utility>

#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/integer_products.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/places.h"
#include "model_loader/sequences/position_numbers.h"
#include "model_loader/sequences/probes.h"
#include "model_loader/sequences/rounding.h"
#include "model_loader/sequences/scores.h"

namespace swizzle::sequences {
namespace {

// What stands for the rows of the weight that input `i` becomes.
std::optional<Quantisation> WeightWholes(Context& context, size_t i, bool transposed, float alpha) {
  const auto& wholes = context.WholesOf(context.InputAs<Known>(i)->constant);
  const int64_t rows_axis = transposed ? 0 : 1;
  if (!wholes || !(alpha > 0.0f)) return std::nullopt;
  if (!wholes->quantisation.per_tensor() && wholes->axis != rows_axis) return std::nullopt;
  Quantisation scaled = wholes->quantisation;
  for (float& scale : scaled.scales) scale *= alpha;
  return scaled;
}

}  // namespace

StatusOr<Tokens> LinearOf(Context& context, const Tokens& x, size_t weight, bool transposed, float alpha) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, FloatTensor(context, weight, "weight"));
  const Shape& shape = given.first;
  const int64_t depth = context.out().Channels(x.value);
  if (shape.size() != 2 || shape[transposed ? 1 : 0] != depth || given.second.empty()) {
    return context.Refuse("its weight ", ShapeText(shape), " does not fit ", depth, " channels");
  }
  const int64_t rows = shape[transposed ? 0 : 1];
  std::vector<float> matrix(given.second.size());
  MakeLinearWeight(given.second, rows, depth, transposed, alpha, matrix);
  const std::optional<Quantisation> rounding = RoundingOf(context, 0);
  std::optional<Quantisation> wholes;
  if (rounding || context.node().attributes.contains(kByPosition)) {
    wholes = WeightWholes(context, weight, transposed, alpha);
  }
  const int read = wholes && rounding ? context.out().Quantise(x.value, *rounding) : x.value;
  return WithChannels(context, x, context.out().Linear(read, rows, std::move(matrix), std::move(wholes)));
}

StatusOr<Tokens> WithBias(Context& context, const Tokens& x, size_t bias, float beta) {
  const int64_t channels = context.out().Channels(x.value);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> shift, FloatsOf(context, bias, channels, "bias"));
  for (float& number : shift) number *= beta;
  Tokens tokens = x;
  tokens.value =
      context.out().Affine(x.value, std::vector<float>(static_cast<size_t>(channels), 1.0f), std::move(shift));
  return tokens;
}

StatusOr<Form> InterpretGemm(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_a, IntAttribute(context.node(), "transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(context.node(), "transB", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(context.node(), "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, FloatAttribute(context.node(), "beta", 1.0f));
  if (trans_a != 0) return context.Refuse("transA would transpose tokens");
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens y, LinearOf(context, x, 1, trans_b != 0, alpha));
  if (context.HasInput(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(y, WithBias(context, y, 2, beta));
  }
  return y;
}

StatusOr<Form> InterpretMatMul(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(context.node(), "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_a, IntAttribute(context.node(), "transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(context.node(), "transB", 0));
  for (const char* batch : {"transBatchA", "transBatchB"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t transposed, IntAttribute(context.node(), batch, 0));
    if (transposed != 0) return context.Refuse(batch, " is set");
  }
  if (trans_a != 0) return context.Refuse("transA is set");
  const bool by_position = context.AnyInputIs<Positions>() || context.AnyInputIs<PositionNumbers>();
  if (MeetsProbe(context)) {
    auto product = MultiplyProbe(context, alpha, trans_b != 0);
    if (product.ok() || !by_position) return product;
  }
  if (by_position) {
    if (trans_b != 0 || alpha != 1.0f) return context.Refuse("it scales or transposes positions");
    return MultiplyPositionNumbers(context);
  }
  if (const auto* scores = context.InputAs<Scores>(0)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens values, AsTokens(context, context.Input(1)));
    if (trans_b != 0 || alpha != 1.0f) return context.Refuse("it scales or transposes values");
    return AttentionOf(context, *scores, values);
  }
  if (MeetsPlaces(context)) {
    if (trans_b != 0) return context.Refuse("it transposes vectors of places");
    return PlaceProductsOf(context, alpha);
  }
  if (context.InputAs<Known>(1) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(context, context.Input(0)));
    SWIZZLE_ASSIGN_OR_RETURN(Tokens y, LinearOf(context, x, 1, trans_b != 0, alpha));
    return y;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens a, AsTokens(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens b, AsTokens(context, context.Input(1)));
  if (trans_b != 0 && b.view.rank() >= 2) std::swap(b.view.dims[b.view.rank() - 1], b.view.dims[b.view.rank() - 2]);
  return ScoresOf(context, a, b, alpha);
}

}  // namespace swizzle::sequences
