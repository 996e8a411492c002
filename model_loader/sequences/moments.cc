#include "model_loader/sequences/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/point_function.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/interpret.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/moved_tokens.h"
#include "model_loader/sequences/pools.h"

namespace swizzle::sequences {
namespace {

using Stage = Moment::Stage;

bool SameTokens(const Moment& a, const Moment& b) {
  return a.tokens.value == b.tokens.value && a.tokens.view == b.tokens.view && a.centred == b.centred;
}

Normalisation NormOf(float epsilon, bool centred, int64_t groups) {
  return {epsilon, centred, static_cast<int32_t>(groups)};
}

// A number for each channel of one group, for all groups.
StatusOr<std::vector<float>> OfGroups(Context& context, size_t input, int64_t channels, int64_t groups,
                                      const char* what) {
  const auto* known = context.InputAs<Known>(input);
  const bool of_last = known != nullptr && (known->IsUniform() ||
                                            (!known->shape.empty() && known->shape.back() == Whole{channels / groups}));
  if (groups > 1 && !of_last) return context.Refuse("its ", what, " is not one number for each channel of a head");
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> own, FloatsOf(context, input, channels / groups, what));
  std::vector<float> all;
  for (int64_t group = 0; group < groups; ++group) all.insert(all.end(), own.begin(), own.end());
  return all;
}

Moment At(Moment moment, Stage stage) {
  moment.stage = stage;
  return moment;
}

// Whether a function of one variable is its square.
bool IsSquare(const Samples& samples) {
  return std::ranges::equal(samples, SamplePoints(), [](double sample, double x) { return sample == x * x; });
}

// Whether the other input is a constant that leaves the moment at `at` its shape.
bool KeepsShape(Context& context, size_t at) {
  const auto* known = context.InputAs<Known>(1 - at);
  const Wholes shape = *ShapeOf(context.Input(at));
  return known != nullptr && Broadcast(known->shape, shape) == shape;
}

// The least square of a length that is at least this, per channel. What is as short becomes shorter by a part than it
// should be; what is zero stays zero.
float EpsilonOf(double least, int64_t channels) {
  const double epsilon = least * least / static_cast<double>(channels);
  return static_cast<float>(std::max<double>(epsilon, std::numeric_limits<float>::min()));
}

// A length behind what keeps a vector of zeros from being divided by zero, and changes no other; none where that is not
// what the node does.
std::optional<Moment> BoundedLength(Context& context, const Moment& moment, size_t at) {
  const std::string& op = context.node().op;
  const bool bounds = op == "Max" || (op == "Clip" && at == 0 && !context.HasInput(2));
  if (!bounds || !moment.of_length || moment.stage != Stage::kDeviation || !KeepsShape(context, at))
    return std::nullopt;
  const auto least = NumberOf(context, 1 - at);
  if (!least || !(*least >= 0.0 && *least <= 1e-6)) return std::nullopt;
  Moment bounded = moment;
  bounded.epsilon = EpsilonOf(*least, context.out().Channels(moment.tokens.value) / moment.groups);
  return bounded;
}

// The stage after a node of one input, or of a number beside it; none where that is not how a norm goes on.
std::optional<Moment> AfterNumber(Context& context, const Moment& moment, size_t at) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Node& node = context.node();
  const bool has_number = node.inputs.size() == 2 && KeepsShape(context, at);
  const double number = has_number ? NumberOf(context, 1 - at).value_or(kNone) : kNone;
  const auto is = [&](const char* name, Stage stage) { return node.op == name && moment.stage == stage; };
  if (is("Pow", Stage::kCentred) && number == 2.0) return At(moment, Stage::kSquares);
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
  return BoundedLength(context, moment, at);
}

// What a mean of squares is divided by or multiplied with, in the end: the tokens that were squared.
bool ScalesItself(Context& context, const Moment& moment, size_t other) {
  const auto* x = context.InputAs<Tokens>(other);
  const std::string& op = context.node().op;
  const bool goes_on = (op == "Div" && other == 0 && moment.stage == Stage::kDeviation) ||
                       (op == "Mul" && moment.stage == Stage::kInverse);
  if (moment.centred || !goes_on || x == nullptr) return false;
  const auto ordered = Contiguous(context, *x);  // its function is applied already
  return ordered.ok() && ordered->value == moment.tokens.value && ordered->view == moment.tokens.view;
}

}  // namespace

StatusOr<Form> FinishMoment(Context& context, const Moment& moment, std::vector<float> shift) {
  if (moment.stage != Stage::kNormal && moment.stage != Stage::kScaled) {
    return Unimplemented("a part of a layer normalisation is read by something else");
  }
  const size_t channels = static_cast<size_t>(context.out().Channels(moment.tokens.value));
  std::vector<float> scale = moment.scale;
  if (scale.empty()) scale.assign(channels, 1.0f);
  if (shift.empty()) shift.assign(channels, 0.0f);
  if (moment.of_length) {
    const float root = std::sqrt(static_cast<float>(channels) / static_cast<float>(moment.groups));
    for (float& number : scale) number /= root;
  }
  Tokens tokens = moment.tokens;
  tokens.value = context.out().LayerNorm(tokens.value, std::move(scale), std::move(shift),
                                         NormOf(moment.epsilon, moment.centred, moment.groups));
  return tokens;
}

StatusOr<Form> CombineMoments(Context& context) {
  const std::string& op = context.node().op;
  const size_t at = context.InputAs<Moment>(0) != nullptr ? 0 : 1;
  const bool stands_third = context.HasInput(2) && context.InputAs<Moment>(2) != nullptr;
  if (stands_third || context.InputAs<Moment>(at) == nullptr)
    return context.Refuse("it takes a norm's part as a bound");
  const Moment moment = *context.InputAs<Moment>(at);
  const size_t other = 1 - at;
  const Moment* second = context.node().inputs.size() == 2 ? context.InputAs<Moment>(other) : nullptr;
  const auto is = [&](const char* name, Stage stage) { return op == name && moment.stage == stage; };
  const int64_t channels = context.out().Channels(moment.tokens.value);
  const bool stays_real = op == "Cast" && IsFloating(PointFunctionType(context.node(), DType::kFloat32));
  if (stays_real) return moment;
  if (auto next = AfterNumber(context, moment, at)) return *std::move(next);
  if (is("Sub", Stage::kMean) && at == 1 && context.InputAs<Tokens>(0) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, Materialised(context, *context.InputAs<Tokens>(0)));
    if (x.value == moment.tokens.value && x.view == moment.tokens.view) return At(moment, Stage::kCentred);
  }
  if (is("Mul", Stage::kCentred) && second != nullptr && second->stage == Stage::kCentred &&
      SameTokens(moment, *second)) {
    return At(moment, Stage::kSquares);
  }
  if (second != nullptr && SameTokens(moment, *second)) {
    const bool divides = is("Div", Stage::kCentred) && second->stage == Stage::kDeviation;
    const bool multiplies = (is("Mul", Stage::kCentred) && second->stage == Stage::kInverse) ||
                            (is("Mul", Stage::kInverse) && second->stage == Stage::kCentred);
    Moment normal = At(moment, Stage::kNormal);
    normal.epsilon = std::max(moment.epsilon, second->epsilon);  // only one of them has it
    if (divides || multiplies) return normal;
  }
  if (second == nullptr && ScalesItself(context, moment, other)) return At(moment, Stage::kNormal);
  if (is("Mul", Stage::kNormal) && context.InputAs<Known>(other) != nullptr) {
    Moment scaled = At(moment, Stage::kScaled);
    SWIZZLE_ASSIGN_OR_RETURN(scaled.scale, OfGroups(context, other, channels, moment.groups, "scale"));
    if (!scaled.centred) return FinishMoment(context, scaled, {});  // nothing is added, so that all readers share it
    return scaled;
  }
  const bool finished = moment.stage == Stage::kNormal || moment.stage == Stage::kScaled;
  if (op == "Add" && finished && context.InputAs<Known>(other) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> shift, OfGroups(context, other, channels, moment.groups, "shift"));
    return FinishMoment(context, moment, std::move(shift));
  }
  if (!finished) return context.Refuse("it is not how a layer normalisation goes on");
  SWIZZLE_ASSIGN_OR_RETURN(Form normalised, FinishMoment(context, moment, {}));
  context.ReplaceInput(at, std::move(normalised));
  return InterpretElementwise(context);
}

StatusOr<Form> LayerNormOf(Context& context, const Tokens& tokens, size_t scale, size_t shift, float usual_epsilon,
                           bool centred, int64_t groups) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(context.node(), "epsilon", usual_epsilon));
  const int64_t channels = context.out().Channels(tokens.value);
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> scales, OfGroups(context, scale, channels, groups, "scale"));
  std::vector<float> shifts(static_cast<size_t>(channels));
  if (context.HasInput(shift)) {
    SWIZZLE_ASSIGN_OR_RETURN(shifts, OfGroups(context, shift, channels, groups, "bias"));
  }
  Tokens result = tokens;
  result.value =
      context.out().LayerNorm(tokens.value, std::move(scales), std::move(shifts), NormOf(epsilon, centred, groups));
  return result;
}

StatusOr<Form> InterpretReduceMean(Context& context) {
  const Wholes shape = *ShapeOf(context.Input(0));
  const int64_t rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(context.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(context, 1, rank));
  if (!axes) return context.Refuse("it is over all dimensions");
  if (const auto* moved = context.InputAs<MovedTokens>(0)) {
    SWIZZLE_ASSIGN_OR_RETURN(auto of_part, MeanOverPart(context, *moved, *axes, keep));
    if (of_part) return *std::move(of_part);
    const Status settled = SettleInputs(context);
    if (!settled.ok()) return context.Refuse(settled.message());
  }
  const bool last = axes->size() == 1 && (*axes)[0] == rank - 1;
  if (const auto* moment = context.InputAs<Moment>(0); moment != nullptr && moment->stage == Stage::kSquares) {
    if (!last || !keep) return context.Refuse("it is not over the channels");
    Moment variance = At(*moment, Stage::kVariance);
    variance.expanded = false;
    return variance;
  }
  SWIZZLE_ASSIGN_OR_RETURN(Tokens tokens, AsTokens(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(auto of_all, MeanOver(context, tokens, *axes, keep));
  if (of_all) return *std::move(of_all);
  if (!last || !keep) return context.Refuse("it is over neither the channels nor the tokens");
  Moment mean;
  if (IsSquare(tokens.samples)) {
    tokens.samples.clear();
    SWIZZLE_ASSIGN_OR_RETURN(mean.tokens, AsGroups(context, tokens, mean.groups));
    mean.centred = false;
    return At(std::move(mean), Stage::kVariance);
  }
  SWIZZLE_ASSIGN_OR_RETURN(tokens, AsGroups(context, tokens, mean.groups));
  context.ReplaceInput(0, tokens);
  mean.tokens = std::move(tokens);
  return mean;
}

StatusOr<Form> InterpretReduceL2(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(context.node()));
  const int64_t rank = static_cast<int64_t>(ShapeOf(context.Input(0))->size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(context, 1, rank));
  if (!keep || !axes || axes->size() != 1 || (*axes)[0] != rank - 1)
    return context.Refuse("it is not over the channels");
  Moment length;
  SWIZZLE_ASSIGN_OR_RETURN(length.tokens, AsGroups(context, context.Input(0), length.groups));
  context.ReplaceInput(0, length.tokens);
  length.centred = false;
  length.of_length = true;
  return At(std::move(length), Stage::kDeviation);
}

StatusOr<Form> InterpretLpNormalization(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t power, IntAttribute(context.node(), "p", 2));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(context.node(), "axis", -1));
  Moment normal;
  SWIZZLE_ASSIGN_OR_RETURN(normal.tokens, AsGroups(context, context.Input(0), normal.groups));
  const bool last = axis == -1 || axis == static_cast<int64_t>(normal.tokens.view.rank()) - 1;
  if (power != 2 || !last) return context.Refuse("it does not divide by the length over the channels");
  normal.centred = false;
  normal.of_length = true;
  normal.epsilon = EpsilonOf(0.0, 1);
  return At(std::move(normal), Stage::kNormal);
}

StatusOr<Form> InterpretLayerNorm(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(context.node(), "axis", -1));
  int64_t groups = 1;
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsGroups(context, context.Input(0), groups));
  if (axis != -1 && axis != static_cast<int64_t>(tokens.view.rank()) - 1)
    return context.Refuse("it is not over the last axis");
  const bool centred = context.node().op == "LayerNormalization";
  return LayerNormOf(context, tokens, 1, 2, 1e-5f, centred, groups);
}

}  // namespace swizzle::sequences
