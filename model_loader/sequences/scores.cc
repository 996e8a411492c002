#include "model_loader/sequences/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model_loader/semantics/axes.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/pair_masks.h"
#include "model_loader/sequences/places.h"

namespace swizzle::sequences {
namespace {

using Stage = Scores::Stage;

// Whether two activations are split into sequences and heads alike, where heads of one may be there several times, for
// as many heads of the other.
bool AlikeInHeads(const View& a, const View& b) {
  const auto is_of_heads = [](const Axes& axes) {
    return std::ranges::all_of(axes, [](const Axis& axis) {
      return axis.kind == AxisKind::kChannels || (axis.kind == AxisKind::kRepeat && axis.size.IsNumber());
    });
  };
  const auto same = [](const Axis& x, const Axis& y) { return x.kind == y.kind && x.size == y.size; };
  constexpr int64_t kMostHeads = int64_t{1} << 16;
  const auto is_too_many = [](const Axis& axis) {
    return axis.kind == AxisKind::kRepeat && axis.size.IsNumber() && axis.size.factor > kMostHeads;
  };
  if (a.rank() != b.rank() || std::ranges::any_of(a.AllAxes(), is_too_many)) return false;
  for (size_t i = 0; i + 2 < a.rank(); ++i) {
    const Axes &left = a.dims[i], &right = b.dims[i];
    if (is_of_heads(left) && is_of_heads(right) ? SizeOf(left) != SizeOf(right)
                                                : !std::ranges::equal(left, right, same))
      return false;
  }
  return true;
}

// Heads that are there several times, as channels of their own.
Axes AsHeads(Axes axes) {
  for (Axis& axis : axes) {
    if (axis.kind == AxisKind::kRepeat) axis = {AxisKind::kChannels, axis.size, 0};
  }
  return axes;
}

// How many windows the tokens of dimension `i` are of: one of whole sequences; 0: they are neither. Positions come in
// their order, so that the last are those of a window.
int64_t WindowsOf(Context& context, const View& view, size_t i) {
  if (view.Is(i, AxisKind::kLength)) return 1;
  if (!view.Is(i, AxisKind::kPlaces) || view.dims[i][0].stride != 1) return 0;
  return context.facts().sequences().length / view.dims[i][0].size.factor;
}

int64_t QueryWindowsOf(Context& context, const View& view, bool of_one_query) {
  if (view.rank() < 2) return 0;
  const size_t at = view.rank() - 2;
  if (of_one_query) return view.dims[at].empty() ? 1 : 0;
  return WindowsOf(context, view, at);
}

// The channels of heads, as often as they are there, and of each in order.
std::vector<int64_t> HeadChannels(const View& view, const Axes& of_head) {
  Axes axes = AsHeads(LeadingAxes(view));
  axes.insert(axes.end(), of_head.begin(), of_head.end());
  return ChannelsOf(axes, view.first_channel);
}

// How many heads of queries share one of keys or values, whose channels these are, as often as they are there.
int64_t GroupSizeOf(const std::vector<int64_t>& channels, int64_t heads) {
  const auto size = static_cast<int64_t>(channels.size()) / heads;
  int64_t group_size = heads;
  for (int64_t head = 1; head < heads; ++head) {
    const auto begin = channels.begin() + head * size;
    if (!std::equal(begin - size, begin, begin)) group_size = std::gcd(group_size, head);
  }
  return group_size;
}

// Of each group of heads the first one's channels.
std::vector<int64_t> OfGroups(const std::vector<int64_t>& channels, int64_t heads, int64_t group_size) {
  const auto size = static_cast<int64_t>(channels.size()) / heads;
  std::vector<int64_t> kept;
  for (int64_t head = 0; head < heads; head += group_size) {
    kept.insert(kept.end(), channels.begin() + head * size, channels.begin() + (head + 1) * size);
  }
  return kept;
}

// Whether all channels are there, those of each head in any order.
bool KeepsHeads(const std::vector<int64_t>& channels, int64_t all, int64_t heads) {
  const auto size = static_cast<int64_t>(channels.size()) / heads;
  if (static_cast<int64_t>(channels.size()) != all) return false;
  std::vector<bool> seen(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    const bool in_head = channels[i] / size == static_cast<int64_t>(i) / size;
    if (!in_head || seen[static_cast<size_t>(channels[i])]) return false;
    seen[static_cast<size_t>(channels[i])] = true;
  }
  return true;
}

// The matrix of tokens whose channels are these, and what it is still to be multiplied by.
StatusOr<std::pair<int, double>> MatrixOf(Context& context, const Tokens& tokens,
                                          const std::vector<int64_t>& channels) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto factored, WithoutFactor(context, tokens));
  SWIZZLE_ASSIGN_OR_RETURN(const int value, context.out().SelectChannels(factored.first.value, channels));
  return std::pair(value, factored.second);
}

// Repeats heads of keys where fewer heads of queries share one of values.
Status ShareKeysAsValues(Context& context, Scores& scores, int64_t group_size) {
  const int64_t shared = std::gcd(scores.group_size, group_size), times = scores.group_size / shared;
  if (times == 1) return {};
  const int64_t size = context.out().Channels(scores.queries) / scores.heads;
  std::vector<int64_t> channels;
  for (int64_t head = 0; head < scores.heads / shared; ++head) {
    for (int64_t i = 0; i < size; ++i) channels.push_back(head / times * size + i);
  }
  SWIZZLE_ASSIGN_OR_RETURN(scores.keys, context.out().SelectChannels(scores.keys, channels));
  scores.group_size = shared;
  return {};
}

// Where, whose input `at` the scores are.
StatusOr<Form> SelectScores(Context& context, Scores scores, size_t at) {
  const bool keeps_one = at == 1;
  const auto fill = NumberOf(context, keeps_one ? 2 : 1);
  if (at == 0 || !fill) return context.Refuse("it chooses between scores and what is no number");
  if (*fill > kExcludedScore) return context.Refuse("it sets the scores of masked tokens to ", *fill);
  const auto* mask = context.InputAs<TokenNumbers>(0);
  if (const auto* distances = context.InputAs<Distances>(0)) {
    return WhereDistances(context, std::move(scores), *distances, keeps_one, *fill);
  }
  if (mask == nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(context, 0));
    return WithPairs(context, std::move(scores), pairs, keeps_one ? MaskUse::kKeepsTrue : MaskUse::kKeepsFalse);
  }
  if ((mask->at_one != 0) != keeps_one) return context.Refuse("its condition is no mask of tokens");
  if ((mask->at_zero != 0) == (mask->at_one != 0)) return scores;
  return MaskScores(context, std::move(scores), *mask, *fill);
}

// Whether Where, whose input `at` the probabilities are, makes those of masked keys 0, which they are.
bool KeepsProbabilities(Context& context, const Scores& scores, size_t at) {
  const auto* mask = context.InputAs<TokenNumbers>(0);
  if (at == 0 || mask == nullptr || mask->input != scores.mask || scores.masked_bias > kExcludedScore) return false;
  const bool keeps_where_one = (mask->at_one != 0) == (at == 1) && (mask->at_zero != 0) != (mask->at_one != 0);
  return keeps_where_one && NumberOf(context, at == 1 ? 2 : 1) == 0.0;
}

// What leaves probabilities, the input `at`, as they are, or asks whether any is invalid.
StatusOr<Form> CombineProbabilities(Context& context, Scores scores, size_t at) {
  const std::string& op = context.node().op;
  if (op == "Where" && KeepsProbabilities(context, scores, at)) return scores;
  if (op == "IsNaN") scores.stage = Stage::kInvalid;
  const Scores* invalid = op == "Where" ? context.InputAs<Scores>(0) : nullptr;
  const bool cleans = invalid != nullptr && invalid->stage == Stage::kInvalid && NumberOf(context, 1) == 0.0;
  if (op != "IsNaN" && !cleans) return context.Refuse("it changes attention's probabilities");
  return scores;
}

// Adds or subtracts what is no number: by distance, or for each pair of tokens, where it is a mask or not.
StatusOr<Form> AddToScores(Context& context, Scores scores, size_t input, MaskUse use) {
  const double sign = use == MaskUse::kAdded ? 1.0 : -1.0;
  if (const auto* distances = context.InputAs<Distances>(input)) {
    if (use == MaskUse::kSubtracted) return context.Refuse("it subtracts numbers by distance from scores");
    return WithDistances(context, std::move(scores), *distances);
  }
  const Form as_it_was = context.Input(input);
  const bool is_constant = std::holds_alternative<Known>(as_it_was);
  const auto pairs = AsPairs(context, input);
  if (pairs.ok()) {
    auto masked = WithPairs(context, scores, *pairs, use);
    if (masked.ok() || !is_constant) return masked;
    context.ReplaceInput(input, as_it_was);
  }
  return WithPairBiases(context, std::move(scores), input, sign);
}

// Multiplies the scores of each head by a number of its own, as Swin V2 does: its queries are. Of nothing that was
// added to them.
StatusOr<Form> ScaleHeads(Context& context, Scores scores, size_t input) {
  const bool are_plain = scores.mask == kNoValue && scores.pattern == nullptr && scores.biases == nullptr &&
                         scores.pair_biases == nullptr && scores.places.empty();
  const View& view = scores.view;
  const bool as_they_were = ChannelsOf(LeadingAxes(view), 0) == scores.head_order;
  if (context.node().op != "Mul" || context.InputAs<Known>(input) == nullptr) {
    return context.Refuse("it changes scores by what is no number");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto factors, FloatTensor(context, input, "factors"));
  const size_t rank = view.rank();
  bool fits = are_plain && as_they_were && factors.first.size() <= rank;
  for (size_t i = 0; fits && i < factors.first.size(); ++i) {
    const size_t dim = rank - factors.first.size() + i;
    const bool of_heads = dim + 2 < rank && IsOfChannels(view.dims[dim]);
    fits = of_heads ? Whole{factors.first[i]} == SizeOf(view.dims[dim]) : factors.first[i] == 1;
  }
  const bool are_positive = std::ranges::all_of(factors.second, [](float f) { return f > 0.0f && std::isfinite(f); });
  if (!fits || !are_positive || std::ssize(factors.second) != scores.heads) {
    return context.Refuse("it multiplies scores by other than positive numbers, one a head");
  }
  const int64_t channels = context.out().Channels(scores.queries);
  std::vector<float> scale;
  for (int64_t c = 0; c < channels; ++c) {
    scale.push_back(factors.second[static_cast<size_t>(c / (channels / scores.heads))]);
  }
  scores.queries = context.out().Scale(scores.queries, std::move(scale));
  return scores;
}

}  // namespace

StatusOr<Form> ScoresOf(Context& context, const Tokens& queries, const Tokens& keys, double scale, bool of_one_query) {
  const size_t rank = queries.view.rank();
  const int64_t windows = QueryWindowsOf(context, queries.view, of_one_query);
  const bool product = windows > 0 && rank == keys.view.rank() && IsOfChannels(queries.view.dims[rank - 1]) &&
                       WindowsOf(context, keys.view, rank - 1) == windows && IsOfChannels(keys.view.dims[rank - 2]) &&
                       AlikeInHeads(queries.view, keys.view);
  if (!product) {
    return context.Refuse("the product of ", Text(queries.view.shape()), " and ", Text(keys.view.shape()),
                          " is not that of queries and keys");
  }
  Scores scores;
  scores.windows = windows;
  scores.of_one_query = of_one_query;
  std::vector<int64_t> of_queries = HeadChannels(queries.view, queries.view.dims[rank - 1]);
  std::vector<int64_t> of_keys = HeadChannels(keys.view, keys.view.dims[rank - 2]);
  const auto size = static_cast<int64_t>(ChannelsOf(queries.view.dims[rank - 1], 0).size());
  scores.heads = static_cast<int64_t>(of_queries.size()) / size;
  // The sum of a head's products is the same in any order.
  const auto all = [&](const Tokens& tokens) { return context.out().Channels(tokens.value); };
  if (of_queries == of_keys && KeepsHeads(of_queries, all(queries), scores.heads) && all(keys) == all(queries)) {
    std::ranges::sort(of_queries);
    of_keys = of_queries;
  }
  scores.group_size = GroupSizeOf(of_keys, scores.heads);
  SWIZZLE_ASSIGN_OR_RETURN(const auto q, MatrixOf(context, queries, of_queries));
  SWIZZLE_ASSIGN_OR_RETURN(const auto k, MatrixOf(context, keys, OfGroups(of_keys, scores.heads, scores.group_size)));
  scores.queries = q.first;
  scores.keys = k.first;
  scores.scale = scale * q.second * k.second;
  scores.view = queries.view;
  scores.head_order = ChannelsOf(LeadingAxes(queries.view), 0);
  scores.view.dims[rank - 1] = {{AxisKind::kKeys, keys.view.dims[rank - 1][0].size}};
  if (of_queries.size() != of_keys.size()) return context.Refuse("queries and keys differ in size");
  return scores;
}

StatusOr<HeadMatrix> HeadsOf(Context& context, const Tokens& tokens) {
  const Axes& of_head = tokens.view.dims.back();
  const std::vector<int64_t> channels = HeadChannels(tokens.view, of_head);
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, MatrixOf(context, tokens, channels));
  const auto size = static_cast<int64_t>(ChannelsOf(of_head, 0).size());
  return HeadMatrix{matrix.first, matrix.second, static_cast<int64_t>(channels.size()) / size};
}

Emitter::AttentionInputs InputsOf(const Scores& scores, int values) {
  return {scores.queries, scores.keys, values, scores.heads, scores.group_size, static_cast<float>(scores.scale)};
}

StatusOr<Form> AttentionOf(Context& context, Scores scores, const Tokens& values) {
  const size_t rank = values.view.rank();
  const bool product = scores.stage == Stage::kProbabilities && rank >= 2 && rank == scores.view.rank() &&
                       QueryWindowsOf(context, scores.view, scores.of_one_query) == scores.windows &&
                       scores.view.Is(rank - 1, AxisKind::kKeys) &&
                       WindowsOf(context, values.view, rank - 2) == scores.windows &&
                       IsOfChannels(values.view.dims[rank - 1]) && AlikeInHeads(scores.view, values.view) &&
                       ChannelsOf(LeadingAxes(scores.view), 0) == scores.head_order;
  if (!product) return context.Refuse("it is not the product of attention's probabilities and values");
  if (scores.mask != kNoValue || context.HasArgMax()) scores = WithoutCausalPattern(std::move(scores));
  const bool masks_sequences = scores.mask != kNoValue || scores.pattern != nullptr || scores.biases != nullptr;
  if (scores.windows > 1 && masks_sequences) return context.Refuse("it masks sequences, but attends within windows");
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens whole, Materialised(context, values));
  const std::vector<int64_t> of_values = HeadChannels(whole.view, whole.view.dims[rank - 1]);
  SWIZZLE_RETURN_IF_ERROR(ShareKeysAsValues(context, scores, GroupSizeOf(of_values, scores.heads)));
  SWIZZLE_ASSIGN_OR_RETURN(const auto v,
                           MatrixOf(context, whole, OfGroups(of_values, scores.heads, scores.group_size)));
  SequenceFacts& facts = context.facts();
  if (scores.mask == kNoValue) {
    facts.AttendWithoutMask();
  } else {
    const float bias = static_cast<float>(scores.masked_bias);
    const Status masked = facts.AttendWithMask(context.out().graph(), scores.mask, bias);
    if (!masked.ok()) return context.Refuse(masked.message());
  }
  Tokens attended;
  if (!scores.places.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(attended.value, DisentangledAttentionOf(context, scores, v.first));
  } else if (scores.windows > 1 || scores.biases != nullptr || scores.pair_biases != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(attended.value, BiasedAttentionOf(context, scores, v.first));
  } else if (scores.pattern != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(attended.value, SparseAttentionOf(context, scores, v.first));
  } else {
    attended.value = context.out().Attention(InputsOf(scores, v.first));
  }
  attended.view = values.view;
  for (size_t i = 0; i + 2 < rank; ++i) attended.view.dims[i] = AsHeads(attended.view.dims[i]);
  attended.view = InOrder(attended.view).view;
  if (!scores.of_one_query) return attended;
  attended.value = context.out().SelectToken(attended.value, 0);
  attended.view.dims[rank - 2].clear();
  return attended;
}

StatusOr<Form> MaskScores(Context& context, Scores scores, const TokenNumbers& mask, double bias) {
  if (std::isnan(bias) || bias > 0.0) return context.Refuse("its mask adds ", bias, " to the scores of masked tokens");
  if (bias == 0.0) return scores;
  if (scores.mask != kNoValue) return context.Refuse("scores are masked twice");
  const auto view = Expanded(mask.view, scores.view.shape());
  bool fits = view && view->rank() == scores.view.rank();
  for (size_t i = 0; fits && i + 1 < view->rank(); ++i) fits = GoesAlong(view->dims[i], scores.view.dims[i]);
  if (!fits || !view->Is(view->rank() - 1, AxisKind::kLength)) {
    return context.Refuse("its mask of shape ", Text(mask.view.shape()), " is not one of keys alone");
  }
  scores.mask = mask.input;
  scores.masked_bias = bias;
  return scores;
}

StatusOr<Form> CombineScores(Context& context) {
  const std::string& op = context.node().op;
  if (op == "Cast") return context.Input(0);
  const size_t inputs = context.node().inputs.size();
  size_t at = inputs - 1;
  while (context.InputAs<Scores>(at) == nullptr) --at;
  Scores scores = *context.InputAs<Scores>(at);
  if (scores.stage == Stage::kProbabilities) return CombineProbabilities(context, std::move(scores), at);
  if (scores.stage != Stage::kRaw) return context.Refuse("it changes attention's scores in a way not known");
  if (op == "Where") return SelectScores(context, std::move(scores), at);
  if (inputs != 2) return context.Refuse("it changes attention's scores in a way not known");
  const size_t other = 1 - at;
  if (const auto* products = context.InputAs<PlaceProducts>(other)) {
    if (op != "Add") return context.Refuse("it does not add products with vectors of places");
    return WithPlaces(context, std::move(scores), *products);
  }
  if (const auto* mask = context.InputAs<TokenNumbers>(other)) {
    if (op != "Add" && !(op == "Sub" && at == 0)) return context.Refuse("it does not add the mask");
    const double bias = mask->at_zero - mask->at_one;
    return MaskScores(context, std::move(scores), *mask, op == "Add" ? bias : -bias);
  }
  const auto number = NumberOf(context, other);
  if (!number) {
    if (op != "Add" && !(op == "Sub" && at == 0)) return ScaleHeads(context, std::move(scores), other);
    return AddToScores(context, std::move(scores), other, op == "Add" ? MaskUse::kAdded : MaskUse::kSubtracted);
  }
  // The softmax is the same whatever is added to all scores.
  if ((op == "Add" || (op == "Sub" && at == 0)) && std::isfinite(*number)) return scores;
  if (op != "Mul" && !(op == "Div" && at == 0))
    return context.Refuse("it changes attention's scores in a way not known");
  const double factor = op == "Mul" ? *number : 1.0 / *number;
  if (!std::isfinite(factor) || factor <= 0.0) return context.Refuse("it multiplies scores by ", factor);
  scores.scale *= factor;
  scores.masked_bias *= factor;
  if (scores.pattern != nullptr) scores.scale_after_mask *= factor;
  SWIZZLE_RETURN_IF_ERROR(ScaleBiases(context, scores, factor));
  for (PlaceProducts::Term& term : scores.places) term.factor *= factor;
  return scores;
}

StatusOr<Form> InterpretSoftmax(Context& context) {
  const int64_t rank = static_cast<int64_t>(ShapeOf(context.Input(0))->size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, SoftmaxAxes(context.node(), context.opset(), rank));
  if (axes != std::vector{rank - 1}) return context.Refuse("it is not over the last dimension");
  if (const auto* scores = context.InputAs<Scores>(0)) {
    if (scores->stage != Stage::kRaw || !scores->view.Is(rank - 1, AxisKind::kKeys))
      return context.Refuse("it is not over keys");
    Scores probabilities = *scores;
    probabilities.stage = Stage::kProbabilities;
    return probabilities;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsMatrix(context, context.Input(0)));
  return WithChannels(context, tokens, context.out().Softmax(tokens.value));
}

}  // namespace swizzle::sequences
