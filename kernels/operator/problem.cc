#include "kernels/operator/problem.h"

#include <array>
#include <cstddef>

namespace swizzle {

std::string_view OpName(Op op) {
  static constexpr std::array<std::string_view, 18> kNames = {
      "conv",      "depthwise_conv", "add",       "activation",   "max_pool",    "average_pool",
      "softmax",   "convert_layout", "multiply",  "scale",        "function",    "transpose",
      "embedding", "layer_norm",     "attention", "select_token", "mean_tokens", "sparse_attention",
  };
  static_assert(static_cast<size_t>(Op::kSparseAttention) + 1 == kNames.size());
  return kNames[static_cast<size_t>(op)];
}

std::string_view FunctionKindName(FunctionKind kind) {
  static constexpr std::array<std::string_view, kFunctionKindCount> kNames = {
      "Sigmoid", "Silu", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh", "Gelu", "GeluTanh"};
  const size_t index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace swizzle
