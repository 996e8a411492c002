// What writes each operator out, in the file of its kind; expand.cc says which. Internal to model_loader/expansions.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_OPERATORS_H_

#include "model_loader/expansions/site.h"

namespace swizzle::expansions {

// fused.cc
Status BiasAdd(Site& site);
Status BiasGelu(Site& site);
Status BiasSplitGelu(Site& site);
Status FastGelu(Site& site);
Status QuickGelu(Site& site);
Status FusedConv(Site& site);
Status FusedGemm(Site& site);
Status FusedMatMul(Site& site);
Status BiasSoftmax(Site& site);

// former.cc: what com.microsoft had first
Status ExpandDims(Site& site);
Status FormerGridSample(Site& site);
Status FormerRange(Site& site);
Status FormerTwin(Site& site);

// learning.cc: of ai.onnx.ml
Status ArrayFeatureExtractor(Site& site);
Status Binarizer(Site& site);
Status FeatureVectorizer(Site& site);
Status Imputer(Site& site);
Status LinearClassifier(Site& site);
Status LinearRegressor(Site& site);
Status Normalizer(Site& site);
Status Scaler(Site& site);

// norms.cc
Status SkipLayerNorm(Site& site);
Status EmbedLayerNorm(Site& site);
Status QuantisedEmbedLayerNorm(Site& site);

// attention.cc: of the standard; of com.microsoft from one weight, and of separate inputs
Status Attention(Site& site);
Status PackedAttention(Site& site);
Status QuantisedAttention(Site& site);
Status MultiHeadAttention(Site& site);

// group_query.cc
Status GroupQueryAttention(Site& site);

// quantised.cc
bool WantsRealConstant(const Site& site);
Status DequantizeLinear(Site& site);
bool WantsZeroPoint(const Site& site);
Status QuantizeLinear(Site& site);
Status MatMulNBits(Site& site);
Status DynamicQuantizeLstm(Site& site);

// rotary.cc: of the standard and of com.microsoft
Status RotaryEmbedding(Site& site);

// vision.cc: of the standard
Status CenterCropPad(Site& site);
Status GlobalLpPool(Site& site);
Status LpPool(Site& site);

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_OPERATORS_H_
