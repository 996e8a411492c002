#include "model_loader/graph/operators.h"

#include <limits>
#include <string>

namespace swizzle {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();

#define SWIZZLE_WINDOW_ATTRIBUTES "kernel_shape strides pads dilations "

constexpr OperatorSpec kOperators[] = {
    {"", "Add", 2, 2, 1, "axis<7 broadcast<7 "},
    {"", "AveragePool", 1, 1, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides "},
    {"", "BatchNormalization", 5, 5, 5, "epsilon is_test<7 momentum spatial<9 training_mode "},
    {"", "Cast", 1, 1, 1, "saturate to "},
    {"", "Clip", 1, 3, 1, "max<11 min<11 "},
    {"", "Concat", 1, kMany, 1, "axis "},
    {"", "Constant", 0, 0, 1, "sparse_value value value_float value_floats value_int value_ints "},
    {"", "ConstantOfShape", 1, 1, 1, "value "},
    {"", "Conv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides "},
    {"", "Div", 2, 2, 1, "axis<7 broadcast<7 "},
    {"", "Dropout", 1, 3, 2, "is_test<7 ratio seed "},
    {"", "Flatten", 1, 1, 1, "axis "},
    {"", "Gather", 2, 2, 1, "axis "},
    {"", "Gemm", 2, 3, 1, "alpha beta broadcast<7 transA transB "},
    {"", "GlobalAveragePool", 1, 1, 1, ""},
    {"", "GlobalMaxPool", 1, 1, 1, ""},
    {"", "HardSigmoid", 1, 1, 1, "alpha beta "},
    {"", "HardSwish", 1, 1, 1, ""},
    {"", "Identity", 1, 1, 1, ""},
    {"", "LeakyRelu", 1, 1, 1, "alpha "},
    {"", "MatMul", 2, 2, 1, ""},
    {"", "MaxPool", 1, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides "},
    {"", "Mul", 2, 2, 1, "axis<7 broadcast<7 "},
    {"", "Pad", 1, 4, 1, "mode pads<11 value<11 "},
    {"", "ReduceMean", 1, 2, 1, "axes<18 keepdims noop_with_empty_axes "},
    {"", "Relu", 1, 1, 1, ""},
    {"", "Reshape", 2, 2, 1, "allowzero "},
    {"", "Shape", 1, 1, 1, "start end "},
    {"", "Sigmoid", 1, 1, 1, ""},
    {"", "Slice", 1, 5, 1, "axes<10 ends<10 starts<10 "},
    {"", "Softmax", 1, 1, 1, "axis "},
    {"", "Squeeze", 1, 2, 1, "axes<13 "},
    {"", "Sub", 2, 2, 1, "axis<7 broadcast<7 "},
    {"", "Transpose", 1, 1, 1, "perm "},
    {"", "Unsqueeze", 1, 2, 1, "axes<13 "},
    {kSwizzleDomain, "Add", 2, 2, 1, "low high "},
    {kSwizzleDomain, "Affine", 3, 3, 1, ""},
    {kSwizzleDomain, "Attention", 3, 3, 1, "heads scale "},
    {kSwizzleDomain, "AveragePool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES "count_include_pad "},
    {kSwizzleDomain, "Clamp", 1, 1, 1, "low high "},
    {kSwizzleDomain, "Conv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "group low high "},
    {kSwizzleDomain, "DepthwiseConv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "low high "},
    {kSwizzleDomain, "Embedding", 2, 2, 1, "offset "},
    {kSwizzleDomain, "Function", 1, 1, 1, "function alpha beta low high "},
    {kSwizzleDomain, "LayerNorm", 3, 3, 1, "epsilon "},
    {kSwizzleDomain, "MaxPool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES},
    {kSwizzleDomain, "MeanTokens", 1, 1, 1, ""},
    {kSwizzleDomain, "Multiply", 2, 2, 1, "low high "},
    {kSwizzleDomain, "Pad", 1, 1, 1, "pads value "},
    {kSwizzleDomain, "Reshape", 1, 1, 1, ""},
    {kSwizzleDomain, "Scale", 2, 2, 1, "low high "},
    {kSwizzleDomain, "SelectToken", 1, 1, 1, "token "},
    {kSwizzleDomain, "Softmax", 1, 1, 1, ""},
    {kSwizzleDomain, "SparseAttention", 5, 5, 1, "heads scale "},
    {kSwizzleDomain, "Transpose", 1, 1, 1, "rows "},
};

}  // namespace

std::span<const OperatorSpec> Operators() { return kOperators; }

const OperatorSpec* FindOperator(std::string_view domain, std::string_view op) {
  for (const OperatorSpec& spec : kOperators) {
    if (spec.domain == domain && spec.op == op) return &spec;
  }
  return nullptr;
}

bool HasAttribute(const OperatorSpec& spec, std::string_view attribute, int64_t opset) {
  for (size_t at = 0; at < spec.attributes.size();) {
    const size_t end = spec.attributes.find(' ', at);
    const std::string_view listed = spec.attributes.substr(at, end - at);
    const std::string_view name = listed.substr(0, listed.find('<'));
    if (name == attribute) return name == listed || opset < std::stoi(std::string(listed.substr(name.size() + 1)));
    at = end + 1;
  }
  return false;
}

}  // namespace swizzle
