#include "model_loader/graph/operators.h"

#include <limits>

namespace swizzle {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();

#define SWIZZLE_WINDOW_ATTRIBUTES "kernel_shape strides pads dilations "

constexpr OperatorSpec kOperators[] = {
    {"", "Add", 2, 2, 1, ""},
    {"", "AveragePool", 1, 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides "},
    {"", "BatchNormalization", 5, 5, 5, "epsilon momentum training_mode "},
    {"", "Cast", 1, 1, 1, "to "},
    {"", "Clip", 1, 3, 1, ""},
    {"", "Concat", 1, kMany, 1, "axis "},
    {"", "Constant", 0, 0, 1, "value value_float value_floats value_int value_ints "},
    {"", "ConstantOfShape", 1, 1, 1, "value "},
    {"", "Conv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides "},
    {"", "Div", 2, 2, 1, ""},
    {"", "Dropout", 1, 3, 2, "ratio seed "},
    {"", "Flatten", 1, 1, 1, "axis "},
    {"", "Gather", 2, 2, 1, "axis "},
    {"", "Gemm", 2, 3, 1, "alpha beta transA transB "},
    {"", "GlobalAveragePool", 1, 1, 1, ""},
    {"", "GlobalMaxPool", 1, 1, 1, ""},
    {"", "Identity", 1, 1, 1, ""},
    {"", "MatMul", 2, 2, 1, ""},
    {"", "MaxPool", 1, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides "},
    {"", "Mul", 2, 2, 1, ""},
    {"", "Pad", 2, 3, 1, "mode "},
    {"", "ReduceMean", 1, 1, 1, "axes keepdims "},
    {"", "Relu", 1, 1, 1, ""},
    {"", "Reshape", 2, 2, 1, "allowzero "},
    {"", "Shape", 1, 1, 1, "start end "},
    {"", "Slice", 3, 5, 1, ""},
    {"", "Softmax", 1, 1, 1, "axis "},
    {"", "Squeeze", 1, 2, 1, "axes "},
    {"", "Sub", 2, 2, 1, ""},
    {"", "Transpose", 1, 1, 1, "perm "},
    {"", "Unsqueeze", 1, 2, 1, "axes "},
    {kSwizzleDomain, "Add", 2, 2, 1, "low high "},
    {kSwizzleDomain, "Affine", 3, 3, 1, ""},
    {kSwizzleDomain, "AveragePool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES "count_include_pad "},
    {kSwizzleDomain, "Clamp", 1, 1, 1, "low high "},
    {kSwizzleDomain, "Conv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "group low high "},
    {kSwizzleDomain, "DepthwiseConv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "low high "},
    {kSwizzleDomain, "MaxPool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES},
    {kSwizzleDomain, "Pad", 1, 1, 1, "pads value "},
    {kSwizzleDomain, "Reshape", 1, 1, 1, ""},
    {kSwizzleDomain, "Softmax", 1, 1, 1, ""},
};

}  // namespace

std::span<const OperatorSpec> Operators() { return kOperators; }

const OperatorSpec* FindOperator(std::string_view domain, std::string_view op) {
  for (const OperatorSpec& spec : kOperators) {
    if (spec.domain == domain && spec.op == op) return &spec;
  }
  return nullptr;
}

bool HasAttribute(const OperatorSpec& spec, std::string_view attribute) {
  for (size_t at = 0; at < spec.attributes.size();) {
    const size_t end = spec.attributes.find(' ', at);
    if (spec.attributes.substr(at, end - at) == attribute) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace swizzle
