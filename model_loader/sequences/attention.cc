#include "model_loader/sequences/attention.h"

#include <cmath>
#include <limits>

#include "model_loader/semantics/slices.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/linear.h"
#include "model_loader/sequences/pair_masks.h"
#include "model_loader/sequences/parts.h"
#include "model_loader/sequences/scores.h"

namespace swizzle::sequences {
namespace {

// [batch, length, channels] -> [batch, heads, length, channels of a head]
StatusOr<Tokens> SplitHeads(Context& context, const Tokens& tokens, int64_t heads) {
  const Wholes shape = tokens.view.shape();
  constexpr size_t kRank = 3;
  if (shape.size() != kRank || heads < 1) return context.Refuse("it lacks its number of heads");
  const auto size = Quotient(shape[2], Whole{heads});
  if (!size) return context.Refuse("its channels do not divide into ", heads, " heads");
  const auto split = Reshaped(tokens.view, {shape[0], shape[1], Whole{heads}, *size});
  if (!split) return context.Refuse("its channels do not divide into ", heads, " heads");
  Tokens by_head = tokens;
  by_head.view = Transposed(*split, {0, 2, 1, 3});
  return by_head;
}

// [batch, heads, length, channels of a head] with each head as often as queries have heads for it.
StatusOr<Tokens> ForHeads(Context& context, Tokens tokens, const Whole& heads) {
  const Whole own = tokens.view.shape()[1];
  const auto times = Quotient(heads, own);
  if (!times || Product(*times, own) != heads) {
    return context.Refuse(Text({own}), " heads of keys and values do not serve ", Text({heads}), " of queries");
  }
  if (!times->IsOne()) tokens.view.dims[1].push_back({AxisKind::kRepeat, *times});
  return tokens;
}

// [batch, heads, length, channels of a head] -> [batch, length, channels]
StatusOr<Form> JoinHeads(Context& context, Tokens tokens) {
  const View by_token = Transposed(tokens.view, {0, 2, 1, 3});
  const Wholes shape = by_token.shape();
  const auto joined = Reshaped(by_token, {shape[0], shape[1], Product(shape[2], shape[3]).value_or(Whole{0})});
  if (!joined) return context.Refuse("its heads do not join");
  tokens.view = *joined;
  return tokens;
}

}  // namespace

StatusOr<Form> InterpretAttention(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t causal, IntAttribute(context.node(), "is_causal", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t mode, IntAttribute(context.node(), "qk_matmul_output_mode", 0));
  if (mode != 0) return context.Refuse("qk_matmul_output_mode is ", mode);
  SWIZZLE_ASSIGN_OR_RETURN(const float softcap, FloatAttribute(context.node(), "softcap", 0.0f));
  if (softcap != 0.0f || context.HasInput(4) || context.HasInput(5) || context.HasInput(6))
    return context.Refuse("it has a softcap or past keys");
  for (const char* window : {"left_window_size", "right_window_size"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t size, IntAttribute(context.node(), window, -1));
    if (size != -1) return context.Refuse("its ", window, " is ", size);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t q_heads, IntAttribute(context.node(), "q_num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t kv_heads, IntAttribute(context.node(), "kv_num_heads", 0));
  const bool packed = ShapeOf(context.Input(0))->size() == 3;
  Tokens heads[3];
  for (size_t i = 0; i < 3; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(heads[i], AsTokens(context, context.Input(i)));
    if (packed) {
      SWIZZLE_ASSIGN_OR_RETURN(heads[i], SplitHeads(context, heads[i], i == 0 ? q_heads : kv_heads));
    }
  }
  const size_t rank = heads[0].view.rank();
  if (rank != 4 || heads[1].view.rank() != rank || heads[2].view.rank() != rank) {
    return context.Refuse("its inputs are not of 3 or 4 dimensions");
  }
  for (size_t i = 1; i < 3; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(heads[i], ForHeads(context, heads[i], heads[0].view.shape()[1]));
  }
  const Whole size = heads[0].view.shape()[3];
  const float usual = size.IsNumber() ? 1.0f / std::sqrt(static_cast<float>(size.factor)) : 1.0f;
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, FloatAttribute(context.node(), "scale", usual));
  heads[1].view = Transposed(heads[1].view, {0, 1, 3, 2});
  SWIZZLE_ASSIGN_OR_RETURN(Form form, ScoresOf(context, heads[0], heads[1], scale));
  if (const auto* mask = context.InputAs<TokenNumbers>(3)) {
    const double lowest = -std::numeric_limits<double>::infinity();
    const auto bias_of = [&](double value) {
      return mask->dtype == DType::kBool ? (value != 0 ? 0.0 : lowest) : value;
    };
    const double at_one = bias_of(mask->at_one);
    if (!std::isfinite(at_one)) return context.Refuse("its mask excludes the tokens to attend to");
    SWIZZLE_ASSIGN_OR_RETURN(form, MaskScores(context, std::get<Scores>(form), *mask, bias_of(mask->at_zero) - at_one));
  } else if (context.HasInput(3)) {
    const auto number = NumberOf(context, 3);
    const bool none =
        number && std::isfinite(*number) && (context.InputAs<Known>(3)->dtype != DType::kBool || *number != 0);
    if (!none) {
      SWIZZLE_ASSIGN_OR_RETURN(const Pairs pairs, AsPairs(context, 3));
      const MaskUse use = pairs.dtype == DType::kBool ? MaskUse::kKeepsTrue : MaskUse::kAdded;
      SWIZZLE_ASSIGN_OR_RETURN(form, WithPairs(context, std::get<Scores>(form), pairs, use));
    }
  }
  if (causal != 0) {
    SWIZZLE_ASSIGN_OR_RETURN(form, WithCausalMask(context, std::get<Scores>(form)));
  }
  std::get<Scores>(form).stage = Scores::Stage::kProbabilities;
  SWIZZLE_ASSIGN_OR_RETURN(form, AttentionOf(context, std::get<Scores>(form), heads[2]));
  if (!packed) return form;
  return JoinHeads(context, std::get<Tokens>(form));
}

StatusOr<Form> InterpretPackedAttention(Context& context) {
  constexpr size_t kWeight = 1, kBias = 2, kMask = 3, kPast = 4, kExtra = 5;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t heads, IntAttribute(context.node(), "num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t causal, IntAttribute(context.node(), "unidirectional", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t rotary, IntAttribute(context.node(), "do_rotary", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float masked, FloatAttribute(context.node(), "mask_filter_value", -10000.0f));
  if (rotary != 0 || context.HasInput(kPast) || context.HasInput(kExtra)) {
    return context.Refuse("it is rotary, or has past keys or a bias of its own");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens packed, LinearOf(context, x, kWeight, false, 1.0f));
  if (context.HasInput(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(packed, WithBias(context, packed, kBias, 1.0f));
  }
  const int64_t channels = context.out().Channels(packed.value);
  SWIZZLE_ASSIGN_OR_RETURN(
      const auto sizes, IntsAttribute(context.node(), "qkv_hidden_sizes", {channels / 3, channels / 3, channels / 3}));
  if (!PartLengths(sizes, channels, 3).ok() || sizes.empty() || packed.view.rank() != 3) {
    return context.Refuse("its weight does not divide into queries, keys and values");
  }
  Tokens parts[3];
  int64_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (sizes[i] < 1) return context.Refuse("its weight does not divide into queries, keys and values");
    SWIZZLE_ASSIGN_OR_RETURN(const Form part, SliceAxis(context, packed, 2, Whole{first}, Whole{first + sizes[i]}));
    SWIZZLE_ASSIGN_OR_RETURN(parts[i], SplitHeads(context, std::get<Tokens>(part), heads));
    first += sizes[i];
  }
  const int64_t head_channels = sizes[0] / heads;
  const float usual = 1.0f / std::sqrt(static_cast<float>(head_channels));
  SWIZZLE_ASSIGN_OR_RETURN(float scale, FloatAttribute(context.node(), "scale", usual));
  if (scale == 0.0f) scale = usual;
  parts[1].view = Transposed(parts[1].view, {0, 1, 3, 2});
  SWIZZLE_ASSIGN_OR_RETURN(Form form, ScoresOf(context, parts[0], parts[1], scale));
  if (const auto* mask = context.InputAs<TokenNumbers>(kMask)) {
    TokenNumbers keys = *mask;
    const bool plain = mask->at_zero == 0.0 && mask->at_one == 1.0 && mask->view.rank() == 2;
    if (!plain) return context.Refuse("its mask is not [batch, length] of 0 and 1");
    keys.view = View{{mask->view.dims[0], Axes(), Axes(), mask->view.dims[1]}};
    SWIZZLE_ASSIGN_OR_RETURN(form, MaskScores(context, std::get<Scores>(form), keys, masked));
  } else if (context.HasInput(kMask) && NumberOf(context, kMask) != 0.0) {
    return context.Refuse("its mask is not one of tokens");
  }
  if (causal != 0) {
    SWIZZLE_ASSIGN_OR_RETURN(form, WithCausalMask(context, std::get<Scores>(form)));
  }
  std::get<Scores>(form).stage = Scores::Stage::kProbabilities;
  SWIZZLE_ASSIGN_OR_RETURN(form, AttentionOf(context, std::get<Scores>(form), parts[2]));
  return JoinHeads(context, std::get<Tokens>(form));
}

}  // namespace swizzle::sequences
