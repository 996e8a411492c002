// Layer normalisation, written out or not, and means.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

using Stage = Moment::Stage;

bool SameTokens(const Moment& a, const Moment& b) {
  return a.tokens.value == b.tokens.value && a.tokens.view == b.tokens.view;
}

Moment At(Moment moment, Stage stage) {
  moment.stage = stage;
  return moment;
}

}  // namespace

StatusOr<Form> Walk::FinishMoment(const Moment& moment, std::vector<float> shift) {
  if (moment.stage != Stage::kNormal && moment.stage != Stage::kScaled) {
    return Unimplemented("a part of a layer normalisation is read by something else");
  }
  const size_t channels = static_cast<size_t>(out_.Channels(moment.tokens.value));
  std::vector<float> scale = moment.scale;
  if (scale.empty()) scale.assign(channels, 1.0f);
  if (shift.empty()) shift.assign(channels, 0.0f);
  Tokens tokens = moment.tokens;
  tokens.value = out_.LayerNorm(tokens.value, std::move(scale), std::move(shift), moment.epsilon);
  return tokens;
}

StatusOr<Form> Walk::CombineMoments() {
  const std::string& op = node().op;
  const size_t at = InputAs<Moment>(0) != nullptr ? 0 : 1;
  const Moment moment = *InputAs<Moment>(at);
  const size_t other = 1 - at;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const double number = node().inputs.size() == 2 ? NumberOf(other).value_or(kNone) : kNone;
  const Moment* second = node().inputs.size() == 2 ? InputAs<Moment>(other) : nullptr;
  const auto is = [&](const char* name, Stage stage) { return op == name && moment.stage == stage; };
  const int64_t channels = out_.Channels(moment.tokens.value);
  if (op == "Cast") return moment;
  if (is("Sub", Stage::kMean) && at == 1 && InputAs<Tokens>(0) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, Materialised(*InputAs<Tokens>(0)));
    if (x.value == moment.tokens.value && x.view == moment.tokens.view) return At(moment, Stage::kCentred);
  }
  if (is("Pow", Stage::kCentred) && number == 2.0) return At(moment, Stage::kSquares);
  if (is("Mul", Stage::kCentred) && second != nullptr && second->stage == Stage::kCentred &&
      SameTokens(moment, *second)) {
    return At(moment, Stage::kSquares);
  }
  if (is("Add", Stage::kVariance) && !std::isnan(number)) {
    Moment shifted = At(moment, Stage::kShifted);
    shifted.epsilon = static_cast<float>(number);
    return shifted;
  }
  if (is("Sqrt", Stage::kShifted) || (is("Pow", Stage::kShifted) && number == 0.5))
    return At(moment, Stage::kDeviation);
  if (is("Pow", Stage::kShifted) && number == -0.5) return At(moment, Stage::kInverse);
  if (is("Reciprocal", Stage::kDeviation) || (is("Div", Stage::kDeviation) && at == 1 && number == 1.0)) {
    return At(moment, Stage::kInverse);
  }
  if (second != nullptr && SameTokens(moment, *second)) {
    const bool divides = is("Div", Stage::kCentred) && second->stage == Stage::kDeviation;
    const bool multiplies = (is("Mul", Stage::kCentred) && second->stage == Stage::kInverse) ||
                            (is("Mul", Stage::kInverse) && second->stage == Stage::kCentred);
    Moment normal = At(moment, Stage::kNormal);
    normal.epsilon = std::max(moment.epsilon, second->epsilon);  // only one of them has it
    if (divides || multiplies) return normal;
  }
  if (is("Mul", Stage::kNormal) && InputAs<Known>(other) != nullptr) {
    Moment scaled = At(moment, Stage::kScaled);
    SWIZZLE_ASSIGN_OR_RETURN(scaled.scale, FloatsOf(other, channels, "scale"));
    return scaled;
  }
  const bool finished = moment.stage == Stage::kNormal || moment.stage == Stage::kScaled;
  if (op == "Add" && finished && InputAs<Known>(other) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> shift, FloatsOf(other, channels, "shift"));
    return FinishMoment(moment, std::move(shift));
  }
  if (!finished) return Refuse("it is not how a layer normalisation goes on");
  SWIZZLE_ASSIGN_OR_RETURN(forms_[node().inputs[at]], FinishMoment(moment, {}));
  return InterpretElementwise();
}

StatusOr<Form> Walk::InterpretReduceMean() {
  const Wholes shape = *ShapeOf(Input(0));
  const int64_t rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t keep, IntAttribute(node(), "keepdims", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(1, rank));
  if (!axes || axes->size() != 1) return Refuse("it is not over one dimension");
  const size_t axis = static_cast<size_t>((*axes)[0]);
  const bool last = (*axes)[0] == rank - 1;
  if (const auto* moment = InputAs<Moment>(0); moment != nullptr && moment->stage == Stage::kSquares) {
    if (!last || keep == 0) return Refuse("it is not over the channels");
    return At(*moment, Stage::kVariance);
  }
  SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(Input(0)));
  if (tokens.view.Is(axis, AxisKind::kLength)) return MeanOf(tokens, axis, keep != 0);
  if (!last || keep == 0) return Refuse("it is over neither the channels nor the tokens");
  SWIZZLE_ASSIGN_OR_RETURN(tokens, AsMatrix(tokens));
  forms_[node().inputs[0]] = tokens;
  Moment mean;
  mean.tokens = std::move(tokens);
  return mean;
}

StatusOr<Form> Walk::LayerNormOf(const Tokens& tokens, size_t scale, size_t shift, float usual_epsilon) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(node(), "epsilon", usual_epsilon));
  const int64_t channels = out_.Channels(tokens.value);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> scales, FloatsOf(scale, channels, "scale"));
  std::vector<float> shifts(static_cast<size_t>(channels));
  if (HasInput(shift)) {
    SWIZZLE_ASSIGN_OR_RETURN(shifts, FloatsOf(shift, channels, "bias"));
  }
  Tokens result = tokens;
  result.value = out_.LayerNorm(tokens.value, std::move(scales), std::move(shifts), epsilon);
  return result;
}

StatusOr<Form> Walk::InterpretLayerNorm() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node(), "axis", -1));
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsMatrix(Input(0)));
  if (axis != -1 && axis != static_cast<int64_t>(tokens.view.rank()) - 1) return Refuse("it is not over the last axis");
  return LayerNormOf(tokens, 1, 2, 1e-5f);
}

}  // namespace swizzle
