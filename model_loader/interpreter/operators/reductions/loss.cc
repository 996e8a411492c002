// Losses of classification, as training scripts export them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

// Scores [N,C,...] as C of them for each of N times `places`.
struct Scores {
  Array array;  // FP32
  int64_t classes = 0, places = 1;

  int64_t count() const { return array.shape[0] * places; }
  // Of class 0 of target i; the others follow `places` apart.
  int64_t At(int64_t i) const { return i / places * classes * places + i % places; }
};

StatusOr<Scores> ScoresOf(Call& call) {
  Scores scores;
  if (!IsFloating(call.In(0).dtype)) return InvalidArgument("input 0 must be floating");
  SWIZZLE_ASSIGN_OR_RETURN(scores.array, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(scores.array, 2));
  scores.classes = scores.array.shape[1];
  scores.places = ProductOf(scores.array.shape, 2, scores.array.rank());
  return scores;
}

// The targets' shape: the scores' without the classes.
Shape TargetShape(const Scores& scores) {
  Shape shape = scores.array.shape;
  shape.erase(shape.begin() + 1);
  return shape;
}

// Each target's class and weight.
struct Targets {
  Array classes;  // INT64, -1: ignored
  Array weights;  // FP32, by class; data is null: all 1
  double WeightOf(int64_t its_class) const {
    if (its_class < 0) return 0.0;
    return weights.data != nullptr ? weights.As<float>()[static_cast<size_t>(its_class)] : 1.0;
  }
};

StatusOr<Targets> ReadTargets(Call& call, const Scores& scores) {
  Targets targets;
  const Array& given = call.In(1);
  if (given.dtype != DType::kInt64 && given.dtype != DType::kInt32) {
    return InvalidArgument("input 1 is ", DTypeName(given.dtype), "; it must be INT64 or INT32");
  }
  if (given.shape != TargetShape(scores)) {
    return InvalidArgument("targets have shape ", ShapeText(given.shape), " instead of ",
                           ShapeText(TargetShape(scores)));
  }
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(targets.weights, call.Floats(2));
    if (targets.weights.shape != Shape{scores.classes}) {
      return InvalidArgument("weights have shape ", ShapeText(targets.weights.shape), " instead of ",
                             ShapeText({scores.classes}));
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t ignored, call.Int("ignore_index", -1));
  const bool ignores = call.HasAttribute("ignore_index");
  SWIZZLE_ASSIGN_OR_RETURN(const Array wide, call.As(given, DType::kInt64));
  SWIZZLE_ASSIGN_OR_RETURN(targets.classes, call.New(DType::kInt64, given.shape));
  const auto from = wide.As<int64_t>();
  const auto to = targets.classes.Mutable<int64_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    const bool skipped = ignores && from[i] == ignored;
    if (!skipped && (from[i] < 0 || from[i] >= scores.classes)) {
      return InvalidArgument("target ", from[i], " is not one of ", scores.classes, " classes");
    }
    to[i] = skipped ? -1 : from[i];
  }
  return targets;
}

// The losses of log probabilities, reduced as the node wants it.
StatusOr<Array> LossOf(Call& call, const Scores& log_probabilities) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string reduction, call.String("reduction", "mean"));
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return InvalidArgument("reduction is '", reduction, "'; it may be none, sum or mean");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Targets targets, ReadTargets(call, log_probabilities));
  const bool reduces = reduction != "none";
  SWIZZLE_ASSIGN_OR_RETURN(Array loss, call.New(DType::kFloat32, reduces ? Shape() : TargetShape(log_probabilities)));
  const auto to = loss.Mutable<float>();
  const float* const from = log_probabilities.array.As<float>().data();
  double sum = 0.0, weights = 0.0;
  for (int64_t i = 0; i < log_probabilities.count(); ++i) {
    const int64_t its_class = targets.classes.As<int64_t>()[static_cast<size_t>(i)];
    const double weight = targets.WeightOf(its_class);
    const int64_t place = log_probabilities.At(i) + std::max<int64_t>(its_class, 0) * log_probabilities.places;
    const double value = its_class < 0 ? 0.0 : -weight * from[place];
    if (!reduces) to[static_cast<size_t>(i)] = static_cast<float>(value);
    sum += value;
    weights += weight;
  }
  if (reduces) to[0] = static_cast<float>(reduction == "mean" ? sum / weights : sum);
  return call.As(loss, call.In(0).dtype);
}

// Logarithms of the scores' softmax over classes.
StatusOr<Array> LogProbabilities(Call& call, const Scores& scores) {
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(DType::kFloat32, scores.array.shape));
  if (scores.classes == 0) return result;
  const float* const all = scores.array.As<float>().data();
  for (int64_t i = 0; i < scores.count(); ++i) {
    const float* const from = all + scores.At(i);
    float* const to = result.Mutable<float>().data() + scores.At(i);
    float largest = *from;
    for (int64_t c = 1; c < scores.classes; ++c) largest = std::max(largest, from[c * scores.places]);
    double sum = 0.0;
    for (int64_t c = 0; c < scores.classes; ++c)
      sum += std::exp(static_cast<double>(from[c * scores.places]) - largest);
    const auto shift = static_cast<float>(std::log(sum));
    for (int64_t c = 0; c < scores.classes; ++c) to[c * scores.places] = from[c * scores.places] - largest - shift;
  }
  return result;
}

}  // namespace

StatusOr<Array> NegativeLogLikelihoodLoss(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Scores scores, ScoresOf(call));
  return LossOf(call, scores);
}

StatusOr<Results> SoftmaxCrossEntropyLoss(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(Scores scores, ScoresOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(scores.array, LogProbabilities(call, scores));
  SWIZZLE_ASSIGN_OR_RETURN(Array loss, LossOf(call, scores));
  SWIZZLE_ASSIGN_OR_RETURN(Array log_probabilities, call.As(scores.array, call.In(0).dtype));
  return Results{std::move(loss), std::move(log_probabilities)};
}

}  // namespace swizzle::interpreter
