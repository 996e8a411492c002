#include "model_loader/graph/operator_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model_loader/graph/operator_rows.h"

namespace swizzle {
namespace {

using namespace operator_rows;

constexpr std::string_view kLearning = "ai.onnx.ml";
constexpr std::string_view kMicrosoft = "com.microsoft";

// Sorted by domain and name.
constexpr auto kRowsOfOthers = std::to_array<OnnxOperator>({
    {{kLearning, "ArrayFeatureExtractor", 2, 2, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kLearning, "Binarizer", 1, 1, 1, "threshold "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kLearning, "FeatureVectorizer", 1, kMany, 1, "inputdimensions "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kLearning, "Imputer", 1, 1, 1,
      "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64 "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kLearning, "LabelEncoder", 1, 1, 1,
      "classes_strings default_float default_int64 default_string keys_floats keys_int64s keys_strings values_floats "
      "values_int64s values_strings "},
     P::kNone,
     S::kNone,
     {1, 0, R::kFirstInput, true},
     kNoInput},
    {{kLearning, "LinearClassifier", 1, 1, 2,
      "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kLearning, "LinearRegressor", 1, 1, 1, "coefficients intercepts post_transform targets "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kLearning, "Normalizer", 1, 1, 1, "norm "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kLearning, "Scaler", 1, 1, 1, "offset scale "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "Attention", 3, 7, 3,
      "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
      "unidirectional "},
     P::kNone,
     S::kByForm,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "BiasAdd", 2, 3, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "BiasGelu", 2, 2, 1, ""}, P::kNone, S::kByForm, {}, kSameKind, kExpanded},
    {{kMicrosoft, "BiasSoftmax", 2, 2, 1, "axis is_inner_broadcast "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "BiasSplitGelu", 2, 2, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "DequantizeLinear", 2, 3, 1, "axis block_size "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "DynamicQuantizeLSTM", 12, 12, 3,
      "activation_alpha activation_beta activations clip direction hidden_size input_forget layout "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "DynamicQuantizeMatMul", 3, 5, 1, ""}, P::kRemoved, S::kRemoved, {1}, kNoInput},
    {{kMicrosoft, "EmbedLayerNormalization", 1, 9, 3, "epsilon mask_index_type "},
     P::kNone,
     S::kByForm,
     {},
     kNoInput,
     kExpanded},
    {{kMicrosoft, "ExpandDims", 2, 2, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "FastGelu", 1, 2, 1, ""}, P::kNone, S::kByForm, {}, kSameKind, kExpanded},
    {{kMicrosoft, "FusedConv", 2, 4, 1,
      "activation activation_params auto_pad dilations group kernel_shape pads strides "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "FusedGemm", 2, 3, 1,
      "activation activation_alpha activation_beta activation_gamma alpha beta transA transB "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "FusedMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB "},
     P::kNone,
     S::kByForm,
     {},
     kNoInput,
     kExpanded},
    {{kMicrosoft, "FusedMatMulActivation", 2, 2, 1,
      "activation activation_alpha activation_axis activation_beta activation_gamma alpha transA transB transBatchA "
      "transBatchB "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "GatherND", 2, 2, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "Gelu", 1, 1, 1, ""}, P::kNone, S::kByElement, {}, kSameKind, kExpanded},
    {{kMicrosoft, "GridSample", 2, 2, 1, "align_corners mode padding_mode "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "GroupQueryAttention", 7, 12, 3,
      "do_rotary kv_num_heads local_window_size num_heads qk_output rotary_interleaved scale smooth_softmax softcap "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "MatMulIntegerToFloat", 4, 7, 1, ""}, P::kRemoved, S::kRemoved, {1}, kNoInput},
    {{kMicrosoft, "MatMulNBits", 3, 6, 1, "K N accuracy_level bits block_size weight_prepacked "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "MultiHeadAttention", 1, 10, 4, "mask_filter_value num_heads scale unidirectional "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "Pad", 2, 3, 1, "mode "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "QAttention", 5, 9, 2,
      "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional "},
     P::kNone,
     S::kRemoved,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "QEmbedLayerNormalization", 7, 18, 2, "epsilon "}, P::kNone, S::kRemoved, {}, kNoInput, kExpanded},
    {{kMicrosoft, "QGemm", 6, 9, 1, "alpha transA transB "}, P::kComputed, S::kNone, {1}, kNoInput},
    {{kMicrosoft, "QLinearAdd", 7, 8, 1, ""}, P::kComputed, S::kRemoved, {1, 0, R::kElementwise}, kSameType},
    {{kMicrosoft, "QLinearAveragePool", 4, 5, 1,
      "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides "},
     P::kComputed,
     S::kNone,
     {1, 0, R::kFirstInput},
     kSameType},
    {{kMicrosoft, "QLinearConcat", 5, kMany, 1, "axis "}, P::kComputed, S::kNone, {1}, kNoInput},
    {{kMicrosoft, "QLinearGlobalAveragePool", 5, 5, 1, "channels_last "},
     P::kComputed,
     S::kNone,
     {1, 0, R::kFirstInput},
     kSameType},
    {{kMicrosoft, "QLinearLeakyRelu", 4, 5, 1, "alpha "}, P::kComputed, S::kNone, {1, 0, R::kFirstInput}, kSameKind},
    {{kMicrosoft, "QLinearMul", 7, 8, 1, ""}, P::kComputed, S::kNone, {1, 0, R::kElementwise}, kSameType},
    {{kMicrosoft, "QLinearSigmoid", 4, 5, 1, ""}, P::kComputed, S::kNone, {1, 0, R::kFirstInput}, kSameKind},
    {{kMicrosoft, "QLinearSoftmax", 5, 5, 1, "axis opset "}, P::kComputed, S::kNone, {1}, kSameKind},
    {{kMicrosoft, "QuantizeLinear", 2, 3, 1, "axis block_size "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "QuickGelu", 1, 1, 1, "alpha "}, P::kNone, S::kByElement, {}, kSameKind, kExpanded},
    {{kMicrosoft, "Range", 2, 3, 1, ""}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
    {{kMicrosoft, "RotaryEmbedding", 4, 4, 1, "interleaved is_packed_batching num_heads rotary_embedding_dim scale "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "SkipLayerNormalization", 3, 5, 4, "epsilon "}, P::kNone, S::kByForm, {}, kSameKind, kExpanded},
    {{kMicrosoft, "SkipSimplifiedLayerNormalization", 3, 4, 4, "epsilon "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput | kSameKind,
     kExpanded},
    {{kMicrosoft, "TransposeMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB "},
     P::kNone,
     S::kNone,
     {},
     kAnyInput,
     kExpanded},
    {{kMicrosoft, "Trilu", 1, 2, 1, "upper "}, P::kNone, S::kNone, {}, kAnyInput, kExpanded},
});

constexpr auto kOperators = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  constexpr size_t kOwn = kOnnxRows.size();
  return std::array{(kIndex < kOwn ? kOnnxRows[kIndex] : kRowsOfOthers[kIndex - kOwn])...};
}
(std::make_index_sequence<kOnnxRows.size() + kRowsOfOthers.size()>());

constexpr std::pair<std::string_view, std::string_view> KeyOf(const OnnxOperator& row) {
  return {row.spec.domain, row.spec.op};
}

static_assert(std::is_sorted(kOperators.begin(), kOperators.end(),
                             [](const OnnxOperator& a, const OnnxOperator& b) { return KeyOf(a) < KeyOf(b); }));

}  // namespace

std::span<const OnnxOperator> OnnxOperators() { return kOperators; }

const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view op) {
  const auto key = std::pair(domain, op);
  const auto found = std::lower_bound(kOperators.begin(), kOperators.end(), key,
                                      [](const OnnxOperator& row, const auto& name) { return KeyOf(row) < name; });
  return found != kOperators.end() && KeyOf(*found) == key ? &*found : nullptr;
}

OperatorFacts FactsOf(std::string_view domain, std::string_view op) {
  const OnnxOperator* const row = FindOnnxOperator(domain, op);
  return row != nullptr ? row->facts : kAnyInput;
}

const OperatorSpec* FindOperator(std::string_view domain, std::string_view op) {
  if (domain == kSwizzleDomain) return FindCanonicalOperator(op);
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->plan != PlanUse::kNone ? &row->spec : nullptr;
}

const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op) {
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->sequences != SequenceUse::kNone ? &row->spec : FindOperator(domain, op);
}

const OperatorSpec* FindInterpretedOperator(std::string_view domain, std::string_view op) {
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->interpreter.Runs() ? &row->spec : nullptr;
}

const OperatorSpec* FindExpandedOperator(std::string_view domain, std::string_view op) {
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->is_expanded ? &row->spec : nullptr;
}

}  // namespace swizzle
