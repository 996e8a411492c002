// Masks of pairs of places: from constants and comparisons of positions to the pattern of an attention.
#include <algorithm>
#include <cmath>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

constexpr int64_t kMostPairs = int64_t{1} << 28;
constexpr int64_t kMostSteps = 256;  // that a number is computed in; each is a call inside the next

std::vector<double> NumbersOf(const Known& known) {
  std::vector<double> numbers;
  for (const Number& number : known.numbers) {
    if (!number.whole.IsNumber()) return {};
    numbers.push_back(IsFloating(known.dtype) ? number.real : static_cast<double>(number.whole.factor));
  }
  return numbers;
}

}  // namespace

// The length of all sequences; 0 where it is free or too great for masks of pairs.
int64_t Walk::FixedLength() const {
  const int64_t length = sequences_.length;
  return length == kFreeBatch || length < 1 || length > kMostPairs / length ? 0 : length;
}

// Known numbers as those of pairs: [.., length, length], [.., length, 1], [.., length], or one.
StatusOr<Pairs> Walk::PairsOf(const Known& known) const {
  const int64_t length = FixedLength();
  if (length == 0) return Refuse("a mask of pairs of tokens needs sequences of a fixed length");
  const size_t rank = known.shape.size();
  const auto from_last = [&](size_t i) { return i < rank ? known.shape[rank - 1 - i] : Whole{1}; };
  const bool by_key = from_last(0) == Whole{length}, by_query = from_last(1) == Whole{length};
  Pairs pairs{known.dtype, nullptr, {}};
  for (const Whole& size : known.shape) pairs.view.dims.push_back(AsDimension({AxisKind::kRepeat, size}));
  if (known.IsUniform()) {
    const auto number = NumberOf(known);
    if (!number) return Refuse("it depends on the batch or the length");
    pairs.function = PairsOfNumber(*number);
    return pairs;
  }
  const std::vector<double> numbers = NumbersOf(known);
  const size_t square = static_cast<size_t>(length * length), count = numbers.size();
  if (by_key && by_query && known.constant != kNoValue) {
    pairs.function = PairsOfTensor(*graph_.values[known.constant].constant, length);
  } else if (by_key && by_query && count >= square) {
    pairs.function = PairsOfNumbers(numbers, length);
  } else if (by_key && count == static_cast<size_t>(length)) {
    pairs.function = PairsOfKeys(numbers);
  } else if (by_query && from_last(0).IsOne() && count == static_cast<size_t>(length)) {
    pairs.function = PairsOfQueries(numbers);
  }
  if (pairs.function == nullptr) {
    return Refuse("a constant of shape ", Text(known.shape),
                  " is no mask of pairs of tokens: of length by length, two ", "numbers, the same for all heads");
  }
  // Along other dimensions it is the same, whatever they are.
  for (Axes& dim : pairs.view.dims) dim.clear();
  const auto leading = [&](size_t i) { return AsDimension({AxisKind::kRepeat, known.shape[i]}); };
  for (size_t i = 0; i + 2 < rank; ++i) pairs.view.dims[i] = leading(i);
  if (by_key) pairs.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, Whole{length}});
  if (by_query && rank > 1) pairs.view.dims[rank - 2] = AsDimension({AxisKind::kLength, Whole{length}});
  return pairs;
}

// Makes pairs of the input; where it is a mask, for good, so that a constant is read once.
StatusOr<Pairs> Walk::AsPairs(size_t input) {
  if (const auto* pairs = InputAs<Pairs>(input)) return *pairs;
  const auto* known = InputAs<Known>(input);
  if (known == nullptr) return Refuse("it combines a mask of pairs of tokens with what is no constant");
  SWIZZLE_ASSIGN_OR_RETURN(Pairs pairs, PairsOf(*known));
  const bool is_mask = pairs.view.Has(AxisKind::kLength) && pairs.view.Has(AxisKind::kKeys);
  if (is_mask) forms_[node().inputs[input]] = pairs;
  return pairs;
}

StatusOr<Form> Walk::CombinePairs() {
  std::vector<SharedPairs> inputs;
  Pairs result;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    if (!HasInput(i)) return Refuse("an input is left out");
    SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(i));
    const auto view = i == 0 ? pairs.view : Broadcast(result.view, pairs.view);
    if (!view) return Refuse("its inputs do not broadcast");
    result.view = *view;
    if (i == (node().op == "Where" ? 1 : 0)) result.dtype = pairs.dtype;
    inputs.push_back(pairs.function);
  }
  const auto function = PointFunctionOf(node(), result.dtype);
  if (!function) return Refuse("it is not computed beforehand");
  result.dtype = PointFunctionType(node(), result.dtype);
  result.function = PairsApplied(*function, result.dtype, std::move(inputs));
  if (result.function->cost > kMostSteps) return Refuse("its mask takes too many steps to compute");
  return result;
}

// A constant that is too large to be moved as it is.
StatusOr<Form> Walk::MovePairs() {
  SWIZZLE_RETURN_IF_ERROR(AsPairs(0).status());
  const Interpreter* interpreter = FindInterpreter(node().op);
  if (interpreter == nullptr) return Refuse("it is not computed beforehand");
  return (this->*interpreter->run)();
}

StatusOr<Form> Walk::InterpretTrilu() {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t upper, IntAttribute(node(), "upper", 1));
  const auto* known = InputAs<Known>(1);
  const auto diagonal = known != nullptr ? IntegerOf(*known) : HasInput(1) ? std::nullopt : std::optional<int64_t>(0);
  if (!diagonal) return Refuse("its diagonal is not known beforehand");
  const Whole length{FixedLength()};
  const Wholes shape = *ShapeOf(Input(0));
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != length || shape[rank - 2] != length) {
    return Refuse("its input ", Text(shape), " is no mask of pairs of tokens of a fixed length");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Pairs pairs, AsPairs(0));
  pairs.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, length});
  pairs.view.dims[rank - 2] = AsDimension({AxisKind::kLength, length});
  pairs.function = PairsOfTriangle(pairs.function, *diagonal, upper != 0);
  if (pairs.function->cost > kMostSteps) return Refuse("its mask takes too many steps to compute");
  return pairs;
}

// Scores that a mask of pairs leaves. Every mask is read once for each use, whatever the number of attentions.
StatusOr<Scores> Walk::WithPairs(Scores scores, const Pairs& pairs, MaskUse use) {
  const size_t rank = scores.view.rank();
  const auto view = Expanded(pairs.view, scores.view.shape());
  const bool square = rank >= 2 && pairs.view.rank() >= 2 && pairs.view.rank() <= rank && view &&
                      view->rank() == rank && view->Is(rank - 1, AxisKind::kKeys) &&
                      view->Is(rank - 2, AxisKind::kLength) && scores.view.Is(rank - 1, AxisKind::kKeys) &&
                      scores.view.Is(rank - 2, AxisKind::kLength);
  if (!square) {
    return Refuse("its mask ", Text(pairs.view.shape()), " does not go with scores ", Text(scores.view.shape()));
  }
  const int64_t length = FixedLength();
  std::shared_ptr<const MaskPattern>& mask = masks_[{pairs.function, use}];
  if (mask == nullptr) {
    if ((pair_work_left_ -= length * length * (pairs.function->cost + 1)) < 0) {
      return Refuse("its mask takes too much to compute");
    }
    auto pattern = PatternOf(*pairs.function, length, use);
    if (!pattern.ok()) return Refuse(pattern.status().message());
    mask = std::make_shared<const MaskPattern>(*std::move(pattern));
  }
  if (scores.pattern != nullptr && scores.pattern != mask) {
    auto both = std::make_shared<MaskPattern>();
    both->pattern = Intersection(scores.pattern->pattern, mask->pattern);
    both->largest_excluded = std::max(scores.pattern->largest_excluded, mask->largest_excluded);
    for (int64_t query = 0; query < length; ++query) {
      if (both->pattern.Keys(query).empty())
        return Refuse("its masks let the token at place ", query, " attend to none");
    }
    scores.pattern = std::move(both);
  } else {
    scores.pattern = mask;
  }
  return scores;
}

// Whose mask is causal by its name alone.
StatusOr<Scores> Walk::WithCausalMask(Scores scores) {
  const int64_t length = FixedLength();
  if (length == 0) return Refuse("it is causal, which needs sequences of a fixed length");
  if (causal_ == nullptr) causal_ = PairsOfTriangle(PairsOfNumber(1.0), 0, false);
  Pairs causal{DType::kBool, causal_, {}};
  causal.view.dims = {AsDimension({AxisKind::kLength, Whole{length}}), AsDimension({AxisKind::kKeys, Whole{length}})};
  return WithPairs(std::move(scores), causal, MaskUse::kKeepsTrue);
}

// The canonical operator of attention whose scores have a pattern.
StatusOr<int> Walk::SparseAttentionOf(const Scores& scores, int values) {
  const AttentionPattern& pattern = scores.pattern->pattern;
  if (scores.mask != kNoValue) return Refuse("it has a mask of pairs of tokens as well as one of tokens");
  // What was added before scores were scaled down is scaled with them.
  constexpr double kLeastExcluded = -1e3;
  if (scores.pattern->largest_excluded * scores.scale_after_mask > kLeastExcluded) {
    return Refuse("its mask adds no less than ", scores.pattern->largest_excluded * scores.scale_after_mask,
                  " to the scores of keys that are not attended to");
  }
  if (!(scores.scale > 0.0)) return Refuse("its scores are multiplied by ", scores.scale);
  const float scale = static_cast<float>(scores.scale);
  if (pattern.nnz() == pattern.tokens * pattern.tokens) {
    return out_.Attention(scores.queries, scores.keys, values, scores.heads, scale);
  }
  const auto found = patterns_.find(scores.pattern);
  const auto constants = found != patterns_.end() ? found->second : out_.Pattern(pattern);
  patterns_.emplace(scores.pattern, constants);
  return out_.SparseAttention(scores.queries, scores.keys, values, scores.heads, scale, constants);
}

}  // namespace swizzle
