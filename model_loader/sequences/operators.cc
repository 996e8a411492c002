#include "model_loader/sequences/operators.h"

#include <limits>

namespace swizzle {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();
constexpr std::string_view kMicrosoft = "com.microsoft";

// Some operators' opsets are not told apart: attributes of either kind are read, and what they say is looked at.
constexpr OperatorSpec kOperators[] = {
    {"", "Abs", 1, 1, 1, ""},
    {"", "And", 2, 2, 1, ""},
    {"", "Attention", 3, 6, 4,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision "},
    {"", "Equal", 2, 2, 1, ""},
    {"", "Erf", 1, 1, 1, ""},
    {"", "Exp", 1, 1, 1, ""},
    {"", "Expand", 2, 2, 1, ""},
    {"", "GatherElements", 2, 2, 1, "axis "},
    {"", "GatherND", 2, 2, 1, "batch_dims "},
    {"", "Gelu", 1, 1, 1, "approximate "},
    {"", "Greater", 2, 2, 1, ""},
    {"", "GreaterOrEqual", 2, 2, 1, ""},
    {"", "IsNaN", 1, 1, 1, ""},
    {"", "LayerNormalization", 2, 3, 3, "axis epsilon stash_type "},
    {"", "Less", 2, 2, 1, ""},
    {"", "LessOrEqual", 2, 2, 1, ""},
    {"", "Max", 1, kMany, 1, ""},
    {"", "Min", 1, kMany, 1, ""},
    {"", "Neg", 1, 1, 1, ""},
    {"", "Not", 1, 1, 1, ""},
    {"", "Or", 2, 2, 1, ""},
    {"", "Pow", 2, 2, 1, ""},
    {"", "Range", 3, 3, 1, ""},
    {"", "Reciprocal", 1, 1, 1, ""},
    {"", "ReduceSum", 1, 2, 1, "axes keepdims noop_with_empty_axes "},
    {"", "Split", 1, 2, kMany, "axis num_outputs split "},
    {"", "Sqrt", 1, 1, 1, ""},
    {"", "Tanh", 1, 1, 1, ""},
    {"", "Trilu", 1, 2, 1, "upper "},
    {"", "Where", 3, 3, 1, ""},
    {"", "Xor", 2, 2, 1, ""},
    {kMicrosoft, "Attention", 3, 7, 3,
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
     "unidirectional "},
    {kMicrosoft, "BiasGelu", 2, 2, 1, ""},
    {kMicrosoft, "EmbedLayerNormalization", 7, 9, 3, "epsilon mask_index_type "},
    {kMicrosoft, "FastGelu", 1, 2, 1, ""},
    {kMicrosoft, "FusedMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB "},
    {kMicrosoft, "Gelu", 1, 1, 1, ""},
    {kMicrosoft, "QuickGelu", 1, 1, 1, "alpha "},
    {kMicrosoft, "SkipLayerNormalization", 3, 5, 4, "epsilon "},
};

}  // namespace

const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op) {
  for (const OperatorSpec& spec : kOperators) {
    if (spec.domain == domain && spec.op == op) return &spec;
  }
  return FindOperator(domain, op);
}

}  // namespace swizzle
