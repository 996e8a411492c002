#include "model_loader/sequences/fused.h"

#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/embeddings.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/linear.h"
#include "model_loader/sequences/moments.h"

namespace swizzle::sequences {
namespace {

constexpr float kEpsilon = 1e-12f;  // where a node has none

}  // namespace

StatusOr<Form> InterpretBiasGelu(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens x, AsMatrix(context, context.Input(0)));
  if (context.HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(x, WithBias(context, x, 1, 1.0f));
  }
  const FunctionKind kind = context.node().op == "FastGelu" ? FunctionKind::kGeluTanh : FunctionKind::kGelu;
  x.value = context.out().Apply(x.value, NamedFunction{{kind}});
  return x;
}

StatusOr<Form> InterpretSkipLayerNorm(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens x, AsMatrix(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens skip, AsMatrix(context, context.Input(1)));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AddTokens(context, x, skip));
  constexpr size_t kScale = 2, kShift = 3, kBias = 4, kSum = 3;
  if (context.HasInput(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(sum, WithBias(context, sum, kBias, 1.0f));
  }
  context.SetOther(kSum, sum);
  return LayerNormOf(context, sum, kScale, kShift, kEpsilon);
}

StatusOr<Form> InterpretEmbedLayerNorm(Context& context) {
  constexpr size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4, kScale = 5, kShift = 6,
                   kMask = 7, kPositionIds = 8;
  for (const size_t input : {kIds, kWords, kPositions, kScale, kShift}) {
    if (!context.HasInput(input)) return context.Refuse("its input ", input, " is left out");
  }
  if (context.HasInput(kSegments) && !context.HasInput(kSegmentTable))
    return context.Refuse("its segments have no table");
  SWIZZLE_ASSIGN_OR_RETURN(const Form words, EmbeddingOf(context, kWords, context.Input(kIds)));
  Positions every;
  every.view.dims = {Axes(), context.LengthAxis()};
  Form place = every;
  if (context.HasInput(kPositionIds)) place = context.Input(kPositionIds);
  SWIZZLE_ASSIGN_OR_RETURN(const Form positions, EmbeddingOf(context, kPositions, place));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens sum, AsTokens(context, words));
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens more, AsTokens(context, positions));
  SWIZZLE_ASSIGN_OR_RETURN(sum, AddTokens(context, sum, more));
  if (context.HasInput(kSegments)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Form segments, EmbeddingOf(context, kSegmentTable, context.Input(kSegments)));
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens third, AsTokens(context, segments));
    SWIZZLE_ASSIGN_OR_RETURN(sum, AddTokens(context, sum, third));
  }
  constexpr size_t kMaskOutput = 1, kSumOutput = 2;
  if (context.HasInput(kMask)) {
    context.SetOther(kMaskOutput, context.Input(kMask));
  } else {
    context.SetOther(kMaskOutput, Known{DType::kInt32, {SizeOf(context.BatchAxis())}, {Number()}});
  }
  context.SetOther(kSumOutput, sum);
  return LayerNormOf(context, sum, kScale, kShift, kEpsilon);
}

}  // namespace swizzle::sequences
