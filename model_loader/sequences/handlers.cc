#include "model_loader/sequences/handlers.h"

#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/attention.h"
#include "model_loader/sequences/embeddings.h"
#include "model_loader/sequences/folding.h"
#include "model_loader/sequences/fused.h"
#include "model_loader/sequences/linear.h"
#include "model_loader/sequences/moments.h"
#include "model_loader/sequences/pair_masks.h"
#include "model_loader/sequences/parts.h"
#include "model_loader/sequences/pools.h"
#include "model_loader/sequences/positions.h"
#include "model_loader/sequences/rearrange.h"
#include "model_loader/sequences/rounding.h"
#include "model_loader/sequences/scores.h"
#include "model_loader/sequences/token_counts.h"

namespace swizzle::sequences {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

struct Row {
  std::string_view domain, op;
  Handler handler;
};

constexpr Row kRows[] = {
    {"", "ArgMax", InterpretArgMax},
    {"", "Attention", InterpretAttention},
    {"", "Concat", InterpretConcat},
    {"", "ConstantOfShape", InterpretConstantOfShape},
    {"", "CumSum", InterpretCumSum},
    {"", "DequantizeLinear", InterpretDequantizeLinear},
    {"", "Expand", InterpretExpand},
    {"", "Flatten", InterpretFlatten},
    {"", "Gather", InterpretGather},
    {"", "GatherElements", InterpretGatherElements},
    {"", "GatherND", InterpretGatherND},
    {"", "Gemm", InterpretGemm},
    {"", "GlobalAveragePool", InterpretGlobalAveragePool},
    {"", "If", InterpretIf},
    {"", "LayerNormalization", InterpretLayerNorm},
    {"", "LpNormalization", InterpretLpNormalization},
    {"", "MatMul", InterpretMatMul},
    {"", "Pad", InterpretPad},
    {"", "QuantizeLinear", InterpretQuantizeLinear},
    {"", "RMSNormalization", InterpretLayerNorm},
    {"", "Range", InterpretRange},
    {"", "ReduceL2", InterpretReduceL2},
    {"", "ReduceMean", InterpretReduceMean},
    {"", "ReduceSum", InterpretReduceSum},
    {"", "Reshape", InterpretReshape},
    {"", "Shape", InterpretShape},
    {"", "SimplifiedLayerNormalization", InterpretLayerNorm},
    {"", "Slice", InterpretSlice},
    {"", "Softmax", InterpretSoftmax},
    {"", "Split", InterpretSplit},
    {"", "Squeeze", InterpretSqueeze},
    {"", "Tile", InterpretTile},
    {"", "Transpose", InterpretTranspose},
    {"", "Trilu", InterpretTrilu},
    {"", "Unsqueeze", InterpretUnsqueeze},
    {kMicrosoft, "Attention", InterpretPackedAttention},
    {kMicrosoft, "BiasGelu", InterpretBiasGelu},
    {kMicrosoft, "EmbedLayerNormalization", InterpretEmbedLayerNorm},
    {kMicrosoft, "FastGelu", InterpretBiasGelu},
    {kMicrosoft, "FusedMatMul", InterpretMatMul},
    {kMicrosoft, "SkipLayerNormalization", InterpretSkipLayerNorm},
};

}  // namespace

Handler FindHandler(std::string_view domain, std::string_view op) {
  for (const Row& row : kRows) {
    if (row.domain == domain && row.op == op) return row.handler;
  }
  return nullptr;
}

}  // namespace swizzle::sequences
