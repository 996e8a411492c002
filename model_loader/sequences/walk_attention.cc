// Attention: from products of queries and keys to the canonical operator.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/semantics/axes.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

using Stage = Scores::Stage;

bool IsOfChannels(const Axes& dim) {
  return std::all_of(dim.begin(), dim.end(), [](const Axis& axis) { return axis.kind == AxisKind::kChannels; });
}

// The axes of all dimensions but the last two.
Axes LeadingAxes(const View& view) {
  Axes axes;
  for (size_t i = 0; i + 2 < view.rank(); ++i) axes.insert(axes.end(), view.dims[i].begin(), view.dims[i].end());
  return axes;
}

// Whether two activations are split into sequences and heads alike.
bool AlikeInHeads(const View& a, const View& b) {
  const auto same = [](const Axis& x, const Axis& y) { return x.kind == y.kind && x.size == y.size; };
  const Axes left = LeadingAxes(a), right = LeadingAxes(b);
  return a.rank() == b.rank() && std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
}

Axes With(Axes axes, const Axes& more) {
  axes.insert(axes.end(), more.begin(), more.end());
  return axes;
}

int64_t CountChannels(const Axes& axes) { return static_cast<int64_t>(ChannelsOf(axes, 0).size()); }

// Whether a mask's dimension goes with that of scores: along the same axes, or the same for all of it.
bool FitsScores(const Axes& mask, const Axes& scores) {
  const auto repeats = [](const Axis& axis) { return axis.kind == AxisKind::kRepeat; };
  if (std::all_of(mask.begin(), mask.end(), repeats)) return true;
  const auto fits = [&](const Axis& x, const Axis& y) { return x.size == y.size && (repeats(x) || x.kind == y.kind); };
  return std::equal(mask.begin(), mask.end(), scores.begin(), scores.end(), fits);
}

}  // namespace

// The matrix of tokens whose channels are these, and what it is still to be multiplied by.
StatusOr<std::pair<int, double>> Walk::HeadMatrix(const Tokens& tokens, const Axes& channels) {
  double scale = 1.0;
  Tokens whole = tokens;
  if (!tokens.samples.empty()) {
    const auto function = Recognised(tokens.samples);
    const auto* linear = function ? std::get_if<LinearFunction>(&*function) : nullptr;
    if (linear != nullptr && linear->shift == 0.0f) {
      scale = linear->scale;
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(whole, Materialised(tokens));
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int value,
                           out_.SelectChannels(whole.value, ChannelsOf(channels, tokens.view.first_channel)));
  return std::pair(value, scale);
}

// queries [.., length, channels], keys [.., channels, length]
StatusOr<Form> Walk::ScoresOf(const Tokens& queries, const Tokens& keys, double scale) {
  const size_t rank = queries.view.rank();
  const bool product = rank >= 2 && rank == keys.view.rank() && queries.view.Is(rank - 2, AxisKind::kLength) &&
                       IsOfChannels(queries.view.dims[rank - 1]) && keys.view.Is(rank - 1, AxisKind::kLength) &&
                       IsOfChannels(keys.view.dims[rank - 2]) && AlikeInHeads(queries.view, keys.view);
  if (!product) {
    return Refuse("the product of ", Text(queries.view.shape()), " and ", Text(keys.view.shape()),
                  " is not that of queries and keys");
  }
  Scores scores;
  const Axes leading = LeadingAxes(queries.view);
  SWIZZLE_ASSIGN_OR_RETURN(const auto q, HeadMatrix(queries, With(leading, queries.view.dims[rank - 1])));
  SWIZZLE_ASSIGN_OR_RETURN(const auto k, HeadMatrix(keys, With(LeadingAxes(keys.view), keys.view.dims[rank - 2])));
  scores.queries = q.first;
  scores.keys = k.first;
  scores.heads = CountChannels(leading);
  scores.scale = scale * q.second * k.second;
  scores.view = queries.view;
  scores.view.dims[rank - 1] = keys.view.dims[rank - 1];
  scores.view.dims[rank - 1][0].kind = AxisKind::kKeys;
  if (out_.Channels(scores.queries) != out_.Channels(scores.keys)) return Refuse("queries and keys differ in size");
  return scores;
}

StatusOr<Form> Walk::ContextOf(const Scores& scores, const Tokens& values) {
  const size_t rank = values.view.rank();
  const bool product = scores.stage == Stage::kProbabilities && rank >= 2 && rank == scores.view.rank() &&
                       scores.view.Is(rank - 2, AxisKind::kLength) && scores.view.Is(rank - 1, AxisKind::kKeys) &&
                       values.view.Is(rank - 2, AxisKind::kLength) && IsOfChannels(values.view.dims[rank - 1]) &&
                       AlikeInHeads(scores.view, values.view);
  if (!product) return Refuse("it is not the product of attention's probabilities and values");
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens whole, Materialised(values));
  const Axes leading = LeadingAxes(whole.view);
  SWIZZLE_ASSIGN_OR_RETURN(const auto v, HeadMatrix(whole, With(leading, whole.view.dims[rank - 1])));
  if (scores.mask == kNoValue) {
    plain_attention_ = true;
  } else {
    SWIZZLE_RETURN_IF_ERROR(UseMask(scores.mask));
    const float bias = static_cast<float>(scores.masked_bias);
    if (masks_attention_ && bias != sequences_.masked_bias) return Refuse("its mask's bias is not that of the others");
    sequences_.masked_bias = bias;
    masks_attention_ = true;
  }
  Tokens context;
  if (scores.pattern != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(context.value, SparseAttentionOf(scores, v.first));
  } else {
    context.value =
        out_.Attention(scores.queries, scores.keys, v.first, scores.heads, static_cast<float>(scores.scale));
  }
  context.view = values.view;
  context.view.first_channel = 0;
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    Axes& dim = context.view.dims[i];
    for (size_t k = dim.size(); k-- > 0;) {
      if (dim[k].kind != AxisKind::kChannels) continue;
      dim[k].stride = stride;
      stride *= dim[k].size.factor;
    }
  }
  return context;
}

StatusOr<Form> Walk::MaskScores(Scores scores, const TokenNumbers& mask, double bias) {
  if (std::isnan(bias) || bias > 0.0) return Refuse("its mask adds ", bias, " to the scores of masked tokens");
  if (bias == 0.0) return scores;
  if (scores.mask != kNoValue) return Refuse("scores are masked twice");
  const auto view = Expanded(mask.view, scores.view.shape());
  bool fits = view && view->rank() == scores.view.rank();
  for (size_t i = 0; fits && i + 1 < view->rank(); ++i) fits = FitsScores(view->dims[i], scores.view.dims[i]);
  if (!fits || !view->Is(view->rank() - 1, AxisKind::kLength)) {
    return Refuse("its mask of shape ", Text(mask.view.shape()), " is not one of keys alone");
  }
  scores.mask = mask.input;
  scores.masked_bias = bias;
  return scores;
}

StatusOr<Form> Walk::CombineScores() {
  const std::string& op = node().op;
  if (op == "Cast") return Input(0);
  const size_t inputs = node().inputs.size();
  size_t at = inputs - 1;
  while (InputAs<Scores>(at) == nullptr) --at;
  Scores scores = *InputAs<Scores>(at);
  if (scores.stage == Stage::kProbabilities) {
    if (op == "IsNaN") scores.stage = Stage::kInvalid;
    const Scores* invalid = op == "Where" ? InputAs<Scores>(0) : nullptr;
    const bool cleans = invalid != nullptr && invalid->stage == Stage::kInvalid && NumberOf(1) == 0.0;
    if (op != "IsNaN" && !cleans) return Refuse("it changes attention's probabilities");
    return scores;
  }
  if (scores.stage != Stage::kRaw) return Refuse("it changes attention's scores in a way not known");
  if (op == "Where") return SelectScores(std::move(scores), at);
  if (inputs != 2) return Refuse("it changes attention's scores in a way not known");
  const size_t other = 1 - at;
  if (const auto* mask = InputAs<TokenNumbers>(other)) {
    if (op != "Add" && !(op == "Sub" && at == 0)) return Refuse("it does not add the mask");
    const double bias = mask->at_zero - mask->at_one;
    return MaskScores(std::move(scores), *mask, op == "Add" ? bias : -bias);
  }
  const auto number = NumberOf(other);
  if (!number) {
    if (op != "Add" && !(op == "Sub" && at == 0)) return Refuse("it changes scores by what is no number");
    SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(other));
    return WithPairs(std::move(scores), pairs, op == "Add" ? MaskUse::kAdded : MaskUse::kSubtracted);
  }
  // The softmax is the same whatever is added to all scores.
  if ((op == "Add" || (op == "Sub" && at == 0)) && std::isfinite(*number)) return scores;
  if (op != "Mul" && !(op == "Div" && at == 0)) return Refuse("it changes attention's scores in a way not known");
  const double factor = op == "Mul" ? *number : 1.0 / *number;
  if (!std::isfinite(factor) || factor <= 0.0) return Refuse("it multiplies scores by ", factor);
  scores.scale *= factor;
  scores.masked_bias *= factor;
  if (scores.pattern != nullptr) scores.scale_after_mask *= factor;
  return scores;
}

// Where, whose input `at` the scores are.
StatusOr<Form> Walk::SelectScores(Scores scores, size_t at) {
  const bool keeps_one = at == 1;
  const auto fill = NumberOf(keeps_one ? 2 : 1);
  if (at == 0 || !fill) return Refuse("it chooses between scores and what is no number");
  if (*fill > kExcludedScore) return Refuse("it sets the scores of masked tokens to ", *fill);
  const auto* mask = InputAs<TokenNumbers>(0);
  if (mask == nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(0));
    return WithPairs(std::move(scores), pairs, keeps_one ? MaskUse::kKeepsTrue : MaskUse::kKeepsFalse);
  }
  if ((mask->at_one != 0) != keeps_one) return Refuse("its condition is no mask of tokens");
  if ((mask->at_zero != 0) == (mask->at_one != 0)) return scores;
  return MaskScores(std::move(scores), *mask, *fill);
}

StatusOr<Form> Walk::InterpretSoftmax() {
  const int64_t rank = static_cast<int64_t>(ShapeOf(Input(0))->size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, SoftmaxAxes(node(), graph_.opset, rank));
  if (axes != std::vector{rank - 1}) return Refuse("it is not over the last dimension");
  if (const auto* scores = InputAs<Scores>(0)) {
    if (scores->stage != Stage::kRaw || !scores->view.Is(rank - 1, AxisKind::kKeys))
      return Refuse("it is not over keys");
    Scores probabilities = *scores;
    probabilities.stage = Stage::kProbabilities;
    return probabilities;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsMatrix(Input(0)));
  return WithChannels(tokens, out_.Softmax(tokens.value));
}

// [batch, length, channels] -> [batch, heads, length, channels of a head]
StatusOr<Tokens> Walk::SplitHeads(const Tokens& tokens, int64_t heads) const {
  const Wholes shape = tokens.view.shape();
  constexpr size_t kRank = 3;
  if (shape.size() != kRank || heads < 1) return Refuse("it lacks its number of heads");
  const auto size = Quotient(shape[2], Whole{heads});
  if (!size) return Refuse("its channels do not divide into ", heads, " heads");
  const auto split = Reshaped(tokens.view, {shape[0], shape[1], Whole{heads}, *size});
  if (!split) return Refuse("its channels do not divide into ", heads, " heads");
  Tokens by_head = tokens;
  by_head.view = Transposed(*split, {0, 2, 1, 3});
  return by_head;
}

StatusOr<Form> Walk::InterpretAttention() {
  if (node().domain == "com.microsoft") return InterpretPackedAttention();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t causal, IntAttribute(node(), "is_causal", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t mode, IntAttribute(node(), "qk_matmul_output_mode", 0));
  if (mode != 0) return Refuse("qk_matmul_output_mode is ", mode);
  SWIZZLE_ASSIGN_OR_RETURN(const float softcap, FloatAttribute(node(), "softcap", 0.0f));
  if (softcap != 0.0f || HasInput(4) || HasInput(5)) return Refuse("it has a softcap or past keys");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t q_heads, IntAttribute(node(), "q_num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t kv_heads, IntAttribute(node(), "kv_num_heads", 0));
  const bool packed = ShapeOf(Input(0))->size() == 3;
  Tokens heads[3];
  for (size_t i = 0; i < 3; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(heads[i], AsTokens(Input(i)));
    if (packed) {
      SWIZZLE_ASSIGN_OR_RETURN(heads[i], SplitHeads(heads[i], i == 0 ? q_heads : kv_heads));
    }
  }
  const size_t rank = heads[0].view.rank();
  if (rank != 4 || heads[1].view.rank() != rank) return Refuse("its inputs are not of 3 or 4 dimensions");
  const Whole size = heads[0].view.shape()[3];
  const float usual = size.IsNumber() ? 1.0f / std::sqrt(static_cast<float>(size.factor)) : 1.0f;
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, FloatAttribute(node(), "scale", usual));
  heads[1].view = Transposed(heads[1].view, {0, 1, 3, 2});
  SWIZZLE_ASSIGN_OR_RETURN(Form form, ScoresOf(heads[0], heads[1], scale));
  if (const auto* mask = InputAs<TokenNumbers>(3)) {
    const double lowest = -std::numeric_limits<double>::infinity();
    const auto bias_of = [&](double value) {
      return mask->dtype == DType::kBool ? (value != 0 ? 0.0 : lowest) : value;
    };
    const double at_one = bias_of(mask->at_one);
    if (!std::isfinite(at_one)) return Refuse("its mask excludes the tokens to attend to");
    SWIZZLE_ASSIGN_OR_RETURN(form, MaskScores(std::get<Scores>(form), *mask, bias_of(mask->at_zero) - at_one));
  } else if (HasInput(3)) {
    const auto number = NumberOf(3);
    const bool none = number && std::isfinite(*number) && (InputAs<Known>(3)->dtype != DType::kBool || *number != 0);
    if (!none) {
      SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(3));
      const MaskUse use = pairs.dtype == DType::kBool ? MaskUse::kKeepsTrue : MaskUse::kAdded;
      SWIZZLE_ASSIGN_OR_RETURN(form, WithPairs(std::get<Scores>(form), pairs, use));
    }
  }
  if (causal != 0) {
    SWIZZLE_ASSIGN_OR_RETURN(form, WithCausalMask(std::get<Scores>(form)));
  }
  std::get<Scores>(form).stage = Stage::kProbabilities;
  SWIZZLE_ASSIGN_OR_RETURN(form, ContextOf(std::get<Scores>(form), heads[2]));
  if (!packed) return form;
  Tokens context = std::get<Tokens>(form);
  const View by_token = Transposed(context.view, {0, 2, 1, 3});
  const Wholes shape = by_token.shape();
  const auto joined = Reshaped(by_token, {shape[0], shape[1], Product(shape[2], shape[3]).value_or(Whole{0})});
  if (!joined) return Refuse("its heads do not join");
  context.view = *joined;
  return context;
}

}  // namespace swizzle
