#include "model_loader/graph/operators.h"

#include <string>

#include "kernels/operator/attributes.h"

namespace swizzle {
namespace {

#define SWIZZLE_WINDOW_ATTRIBUTES "kernel_shape strides pads dilations "

constexpr OperatorSpec kSpecs[] = {
    {kSwizzleDomain, "Add", 2, 2, 1, "low high "},
    {kSwizzleDomain, "Affine", 3, 3, 1, ""},
    {kSwizzleDomain, "Attention", 3, 3, 1, "heads scale group_size "},
    {kSwizzleDomain, "AveragePool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES "count_include_pad "},
    {kSwizzleDomain, "BiasedAttention", 4, 4, 1, "heads scale group_size length reach "},
    {kSwizzleDomain, "Clamp", 1, 1, 1, "low high "},
    {kSwizzleDomain, "Concat", 2, kMaxParts, 1, "of_planes sizes "},
    {kSwizzleDomain, "Conv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "group low high swizzle_by_position "},
    {kSwizzleDomain, "DepthToSpace", 1, 1, 1, "block places_first "},
    {kSwizzleDomain, "DepthwiseConv", 2, 4, 1, SWIZZLE_WINDOW_ATTRIBUTES "low high "},
    {kSwizzleDomain, "DisentangledAttention", 4, 4, 1, "heads scale places "},
    {kSwizzleDomain, "Embedding", 2, 2, 1, "offset "},
    {kSwizzleDomain, "Function", 1, 1, 1, "function alpha beta low high "},
    {kSwizzleDomain, "LayerNorm", 3, 3, 1, "epsilon centred groups "},
    {kSwizzleDomain, "MaxPool", 1, 1, 1, SWIZZLE_WINDOW_ATTRIBUTES},
    {kSwizzleDomain, "MeanTokens", 1, 1, 1, ""},
    {kSwizzleDomain, "Multiply", 2, 2, 1, "low high "},
    {kSwizzleDomain, "Pad", 1, 1, 1, "pads value "},
    {kSwizzleDomain, "PermuteTokens", 2, 2, 1, ""},
    {kSwizzleDomain, "Reshape", 1, 1, 1, ""},
    {kSwizzleDomain, "Resize", 1, 1, 1, "linear coordinates nearest scale_h scale_w "},
    {kSwizzleDomain, "Rotary", 2, 2, 1, "heads size pairs "},
    {kSwizzleDomain, "Scale", 2, 2, 1, "low high "},
    {kSwizzleDomain, "SelectToken", 1, 1, 1, "token "},
    {kSwizzleDomain, "Slice", 1, 1, 1, "first "},
    {kSwizzleDomain, "Softmax", 1, 1, 1, ""},
    {kSwizzleDomain, "SparseAttention", 5, 5, 1, "heads scale group_size "},
    {kSwizzleDomain, "Transpose", 1, 1, 1, "rows "},
};

}  // namespace

const OperatorSpec* FindCanonicalOperator(std::string_view op) {
  for (const OperatorSpec& spec : kSpecs) {
    if (spec.op == op) return &spec;
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
