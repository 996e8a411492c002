// The fused operators of com.microsoft, which ONNX Runtime's optimisers write.
#include <cmath>

#include "model_loader/semantics/slices.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

constexpr float kEpsilon = 1e-12f;  // where a node has none

}  // namespace

// FastGelu, BiasGelu: a bias, then the function.
StatusOr<Form> Walk::InterpretBiasGelu() {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens x, AsMatrix(Input(0)));
  if (HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(x, WithBias(x, 1, 1.0f));
  }
  const FunctionKind kind = node().op == "FastGelu" ? FunctionKind::kGeluTanh : FunctionKind::kGelu;
  x.value = out_.Apply(x.value, NamedFunction{{kind}});
  return x;
}

// x + skip + bias, normalised; the sum is output 3.
StatusOr<Form> Walk::InterpretSkipLayerNorm() {
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens skip, AsMatrix(Input(1)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AddTokens(x, skip));
  constexpr size_t kScale = 2, kShift = 3, kBias = 4, kSum = 3;
  if (HasInput(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(sum, WithBias(sum, kBias, 1.0f));
  }
  SetOther(kSum, sum);
  return LayerNormOf(sum, kScale, kShift, kEpsilon);
}

// Embeddings of ids, positions and segments, summed and normalised. Output 1, the number of tokens that the mask lets
// through, stands for the mask.
StatusOr<Form> Walk::InterpretEmbedLayerNorm() {
  constexpr size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4, kScale = 5, kShift = 6,
                   kMask = 7, kPositionIds = 8;
  SWIZZLE_ASSIGN_OR_RETURN(const Form words, EmbeddingOf(kWords, Input(kIds)));
  Positions every;
  every.view.dims = {Axes(), LengthAxis()};
  Form place = every;
  if (HasInput(kPositionIds)) place = Input(kPositionIds);
  SWIZZLE_ASSIGN_OR_RETURN(const Form positions, EmbeddingOf(kPositions, place));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AsTokens(words));
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens more, AsTokens(positions));
  SWIZZLE_ASSIGN_OR_RETURN(sum, AddTokens(sum, more));
  if (HasInput(kSegments)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Form segments, EmbeddingOf(kSegmentTable, Input(kSegments)));
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens third, AsTokens(segments));
    SWIZZLE_ASSIGN_OR_RETURN(sum, AddTokens(sum, third));
  }
  constexpr size_t kMaskOutput = 1, kSumOutput = 2;
  if (HasInput(kMask)) {
    SetOther(kMaskOutput, Input(kMask));
  } else {
    SetOther(kMaskOutput, Known{DType::kInt32, {SizeOf(BatchAxis())}, {Number()}});
  }
  SetOther(kSumOutput, sum);
  return LayerNormOf(sum, kScale, kShift, kEpsilon);
}

// Queries, keys and values from one weight, then attention.
StatusOr<Form> Walk::InterpretPackedAttention() {
  constexpr size_t kWeight = 1, kBias = 2, kMask = 3, kPast = 4, kExtra = 5;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t heads, IntAttribute(node(), "num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t causal, IntAttribute(node(), "unidirectional", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t rotary, IntAttribute(node(), "do_rotary", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float masked, FloatAttribute(node(), "mask_filter_value", -10000.0f));
  if (rotary != 0 || HasInput(kPast) || HasInput(kExtra)) {
    return Refuse("it is rotary, or has past keys or a bias of its own");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens packed, LinearOf(x, kWeight, false, 1.0f));
  if (HasInput(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(packed, WithBias(packed, kBias, 1.0f));
  }
  const int64_t channels = out_.Channels(packed.value);
  SWIZZLE_ASSIGN_OR_RETURN(const auto sizes,
                           IntsAttribute(node(), "qkv_hidden_sizes", {channels / 3, channels / 3, channels / 3}));
  if (!PartLengths(sizes, channels, 3).ok() || sizes.empty() || packed.view.rank() != 3) {
    return Refuse("its weight does not divide into queries, keys and values");
  }
  Tokens parts[3];
  int64_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (sizes[i] < 1) return Refuse("its weight does not divide into queries, keys and values");
    SWIZZLE_ASSIGN_OR_RETURN(const Form part, SliceAxis(packed, 2, Whole{first}, Whole{first + sizes[i]}));
    SWIZZLE_ASSIGN_OR_RETURN(parts[i], SplitHeads(std::get<Tokens>(part), heads));
    first += sizes[i];
  }
  const float usual = 1.0f / std::sqrt(static_cast<float>(sizes[0] / heads));
  SWIZZLE_ASSIGN_OR_RETURN(float scale, FloatAttribute(node(), "scale", usual));
  if (scale == 0.0f) scale = usual;
  parts[1].view = Transposed(parts[1].view, {0, 1, 3, 2});
  SWIZZLE_ASSIGN_OR_RETURN(Form form, ScoresOf(parts[0], parts[1], scale));
  if (const auto* mask = InputAs<TokenNumbers>(kMask)) {
    TokenNumbers keys = *mask;
    const bool plain = mask->at_zero == 0.0 && mask->at_one == 1.0 && mask->view.rank() == 2;
    if (!plain) return Refuse("its mask is not [batch, length] of 0 and 1");
    keys.view = View{{mask->view.dims[0], Axes(), Axes(), mask->view.dims[1]}};
    SWIZZLE_ASSIGN_OR_RETURN(form, MaskScores(std::get<Scores>(form), keys, masked));
  } else if (HasInput(kMask) && NumberOf(kMask) != 0.0) {
    return Refuse("its mask is not one of tokens");
  }
  if (causal != 0) {
    SWIZZLE_ASSIGN_OR_RETURN(form, WithCausalMask(std::get<Scores>(form)));
  }
  std::get<Scores>(form).stage = Scores::Stage::kProbabilities;
  SWIZZLE_ASSIGN_OR_RETURN(form, ContextOf(std::get<Scores>(form), parts[2]));
  Tokens context = std::get<Tokens>(form);
  const View by_token = Transposed(context.view, {0, 2, 1, 3});
  const Wholes shape = by_token.shape();
  const auto joined = Reshaped(by_token, {shape[0], shape[1], Product(shape[2], shape[3]).value_or(Whole{0})});
  if (!joined) return Refuse("its heads do not join");
  context.view = *joined;
  return context;
}

}  // namespace swizzle
