#include "model_loader/sequences/pair_masks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/handlers.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/scores.h"

namespace swizzle::sequences {
namespace {

constexpr double kLeastMasked = -1e3;  // what was added before scores were scaled down is scaled with them

constexpr int64_t kMostSteps = 256;  // that a number is computed in; each is a call inside the next

std::vector<double> NumbersOf(const Known& known) {
  std::vector<double> numbers;
  for (const Number& number : known.numbers) {
    if (!number.whole.IsNumber()) return {};
    numbers.push_back(IsFloating(known.dtype) ? number.real : static_cast<double>(number.whole.factor));
  }
  return numbers;
}

// Known numbers as those of pairs: [.., length, length], [.., length, 1], [.., length], or one.
StatusOr<Pairs> PairsOf(Context& context, const Known& known) {
  const int64_t length = context.FixedLength();
  if (length == 0) return context.Refuse("a mask of pairs of tokens needs sequences of a fixed length");
  const size_t rank = known.shape.size();
  const auto from_last = [&](size_t i) { return i < rank ? known.shape[rank - 1 - i] : Whole{1}; };
  const bool by_key = from_last(0) == Whole{length}, by_query = from_last(1) == Whole{length};
  Pairs pairs{known.dtype, nullptr, {}};
  for (const Whole& size : known.shape) pairs.view.dims.push_back(AsDimension({AxisKind::kRepeat, size}));
  if (known.IsUniform()) {
    const auto number = NumberOf(known);
    if (!number) return context.Refuse("it depends on the batch or the length");
    pairs.function = PairsOfNumber(*number);
    return pairs;
  }
  const std::vector<double> numbers = NumbersOf(known);
  const size_t square = static_cast<size_t>(length * length), count = numbers.size();
  if (by_key && by_query && known.constant != kNoValue) {
    pairs.function = PairsOfTensor(context.Constant(known.constant), length);
  } else if (by_key && by_query && count >= square) {
    pairs.function = PairsOfNumbers(numbers, length);
  } else if (by_key && count == static_cast<size_t>(length)) {
    pairs.function = PairsOfKeys(numbers);
  } else if (by_query && from_last(0).IsOne() && count == static_cast<size_t>(length)) {
    pairs.function = PairsOfQueries(numbers);
  }
  if (pairs.function == nullptr) {
    return context.Refuse("a constant of shape ", Text(known.shape),
                          " is no mask of pairs of tokens: of length by length, two ",
                          "numbers, the same for all heads");
  }
  // Along other dimensions it is the same, whatever they are.
  for (Axes& dim : pairs.view.dims) dim.clear();
  const auto leading = [&](size_t i) { return AsDimension({AxisKind::kRepeat, known.shape[i]}); };
  for (size_t i = 0; i + 2 < rank; ++i) pairs.view.dims[i] = leading(i);
  if (by_key) pairs.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, Whole{length}});
  if (by_query && rank > 1) pairs.view.dims[rank - 2] = AsDimension({AxisKind::kLength, Whole{length}});
  return pairs;
}

}  // namespace

StatusOr<Pairs> AsPairs(Context& context, size_t input) {
  if (const auto* pairs = context.InputAs<Pairs>(input)) return *pairs;
  const auto* known = context.InputAs<Known>(input);
  if (known == nullptr) return context.Refuse("it combines a mask of pairs of tokens with what is no constant");
  SWIZZLE_ASSIGN_OR_RETURN(Pairs pairs, PairsOf(context, *known));
  const bool is_mask = pairs.view.Has(AxisKind::kLength) && pairs.view.Has(AxisKind::kKeys);
  if (is_mask) context.ReplaceInput(input, pairs);
  return pairs;
}

StatusOr<Form> CombinePairs(Context& context) {
  std::vector<SharedPairs> inputs;
  Pairs result;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.HasInput(i)) return context.Refuse("an input is left out");
    SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(context, i));
    const auto view = i == 0 ? pairs.view : Broadcast(result.view, pairs.view);
    if (!view) return context.Refuse("its inputs do not broadcast");
    result.view = *view;
    if (i == (context.node().op == "Where" ? 1 : 0)) result.dtype = pairs.dtype;
    inputs.push_back(pairs.function);
  }
  const auto function = PointFunctionOf(context.node(), result.dtype);
  if (!function) return context.Refuse("it is not computed beforehand");
  result.dtype = PointFunctionType(context.node(), result.dtype);
  result.function = PairsApplied(*function, result.dtype, std::move(inputs));
  if (result.function->cost > kMostSteps) return context.Refuse("its mask takes too many steps to compute");
  return result;
}

StatusOr<Form> MovePairs(Context& context) {
  SWIZZLE_RETURN_IF_ERROR(AsPairs(context, 0).status());
  const Handler handler = FindHandler(context.node().domain, context.node().op);
  if (handler == nullptr) return context.Refuse("it is not computed beforehand");
  return handler(context);
}

StatusOr<Form> InterpretTrilu(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t upper, IntAttribute(context.node(), "upper", 1));
  const auto* known = context.InputAs<Known>(1);
  const auto diagonal = known != nullptr      ? IntegerOf(*known)
                        : context.HasInput(1) ? std::nullopt
                                              : std::optional<int64_t>(0);
  if (!diagonal) return context.Refuse("its diagonal is not known beforehand");
  if (context.FixedLength() == 0) return TriangleOfDistances(context, *diagonal, upper != 0);
  const Whole length{context.FixedLength()};
  const Wholes shape = *ShapeOf(context.Input(0));
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != length || shape[rank - 2] != length) {
    return context.Refuse("its input ", Text(shape), " is no mask of pairs of tokens of a fixed length");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Pairs pairs, AsPairs(context, 0));
  pairs.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, length});
  pairs.view.dims[rank - 2] = AsDimension({AxisKind::kLength, length});
  pairs.function = PairsOfTriangle(pairs.function, *diagonal, upper != 0);
  if (pairs.function->cost > kMostSteps) return context.Refuse("its mask takes too many steps to compute");
  return pairs;
}

StatusOr<Scores> WithPairs(Context& context, Scores scores, const Pairs& pairs, MaskUse use) {
  const size_t rank = scores.view.rank();
  const auto view = Expanded(pairs.view, scores.view.shape());
  const bool square = rank >= 2 && pairs.view.rank() >= 2 && pairs.view.rank() <= rank && view &&
                      view->rank() == rank && view->Is(rank - 1, AxisKind::kKeys) &&
                      view->Is(rank - 2, AxisKind::kLength) && scores.view.Is(rank - 1, AxisKind::kKeys) &&
                      scores.view.Is(rank - 2, AxisKind::kLength);
  if (!square) {
    return context.Refuse("its mask ", Text(pairs.view.shape()), " does not go with scores ",
                          Text(scores.view.shape()));
  }
  const int64_t length = context.FixedLength();
  std::shared_ptr<const MaskPattern>& mask = context.pair_masks().read[{pairs.function, use}];
  if (mask == nullptr) {
    if ((context.pair_masks().work_left -= length * length * (pairs.function->cost + 1)) < 0) {
      return context.Refuse("its mask takes too much to compute");
    }
    auto pattern = PatternOf(*pairs.function, length, use);
    if (!pattern.ok()) return context.Refuse(pattern.status().message());
    mask = std::make_shared<const MaskPattern>(*std::move(pattern));
  }
  if (scores.pattern != nullptr && scores.pattern != mask) {
    auto both = std::make_shared<MaskPattern>();
    both->pattern = Intersection(scores.pattern->pattern, mask->pattern);
    both->largest_excluded = std::max(scores.pattern->largest_excluded, mask->largest_excluded);
    for (int64_t query = 0; query < length; ++query) {
      if (both->pattern.Keys(query).empty())
        return context.Refuse("its masks let the token at place ", query, " attend to none");
    }
    scores.pattern = std::move(both);
  } else {
    scores.pattern = mask;
  }
  return scores;
}

Scores WithoutCausalPattern(Scores scores) {
  if (scores.pattern == nullptr || scores.biases != nullptr || scores.pair_biases != nullptr) return scores;
  const AttentionPattern& pattern = scores.pattern->pattern;
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    const auto keys = pattern.Keys(query);
    if (std::ssize(keys) != query + 1 || keys.back() != query) return scores;
  }
  if (scores.pattern->largest_excluded * scores.scale_after_mask > kLeastMasked) return scores;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  scores.biases = DistancesOf([](int64_t distance) { return distance <= 0 ? 0.0 : kNever; });
  scores.pattern = nullptr;
  return scores;
}

StatusOr<Scores> WithCausalMask(Context& context, Scores scores) {
  const int64_t length = context.FixedLength();
  if (length == 0) {
    Distances past{DType::kBool, DistancesOf([](int64_t distance) { return distance <= 0 ? 1.0 : 0.0; }), kNoValue, {}};
    past.view.dims = {context.LengthAxis(), AsDimension({AxisKind::kKeys, SizeOf(context.LengthAxis())})};
    return WhereDistances(context, std::move(scores), std::move(past), true, -std::numeric_limits<double>::infinity());
  }
  SharedPairs& function = context.pair_masks().causal;
  if (function == nullptr) function = PairsOfTriangle(PairsOfNumber(1.0), 0, false);
  Pairs causal{DType::kBool, function, {}};
  causal.view.dims = {AsDimension({AxisKind::kLength, Whole{length}}), AsDimension({AxisKind::kKeys, Whole{length}})};
  return WithPairs(context, std::move(scores), causal, MaskUse::kKeepsTrue);
}

StatusOr<int> SparseAttentionOf(Context& context, const Scores& scores, int values) {
  const AttentionPattern& pattern = scores.pattern->pattern;
  if (scores.mask != kNoValue) return context.Refuse("it has a mask of pairs of tokens as well as one of tokens");
  if (scores.pattern->largest_excluded * scores.scale_after_mask > kLeastMasked) {
    return context.Refuse("its mask adds no less than ", scores.pattern->largest_excluded * scores.scale_after_mask,
                          " to the scores of keys that are not attended to");
  }
  if (!(scores.scale > 0.0)) return context.Refuse("its scores are multiplied by ", scores.scale);
  const Emitter::AttentionInputs inputs = InputsOf(scores, values);
  if (pattern.nnz() == pattern.tokens * pattern.tokens) return context.out().Attention(inputs);
  auto& emitted = context.pair_masks().emitted;
  const auto found = emitted.find(scores.pattern);
  const auto constants = found != emitted.end() ? found->second : context.out().Pattern(pattern);
  emitted.emplace(scores.pattern, constants);
  return context.out().SparseAttention(inputs, constants);
}

}  // namespace swizzle::sequences
