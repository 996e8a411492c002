#include "kernels/kernel_table.h"

#include <array>

namespace swizzle {

std::string_view OpName(Op op) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "conv",    "depthwise_conv", "add",      "activation", "max_pool", "average_pool",
      "softmax", "convert_layout", "multiply", "scale",      "function", "transpose",
      "embedding", "layer_norm",   "attention", "select_token", "mean_tokens",
  };
  static_assert(static_cast<size_t>(Op::kMeanTokens) + 1 == kNames.size());
  return kNames[static_cast<size_t>(op)];
}

std::string_view FunctionKindName(FunctionKind kind) {
  static constexpr std::array<std::string_view, kFunctionKindCount> kNames = {
      "Sigmoid", "Silu", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh", "Gelu", "GeluTanh"};
  const size_t index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view FormatName(Format format) {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "dense", "csr"};
  static_assert(static_cast<size_t>(Format::kCsr) + 1 == kNames.size());
  return kNames[static_cast<size_t>(format)];
}

int64_t Weight::rows() const {
  return std::visit([](const auto& value) { return value.rows; }, matrix);
}

int64_t Weight::cols() const {
  return std::visit([](const auto& value) { return value.cols; }, matrix);
}

int64_t Weight::nonzeros() const {
  if (const auto* csr = std::get_if<CsrMatrix>(&matrix)) return csr->nnz();
  return std::get<DenseMatrix>(matrix).CountNonzeros();
}

DenseMatrix Weight::ToDense() const {
  if (const auto* csr = std::get_if<CsrMatrix>(&matrix)) return csr->ToDense();
  return std::get<DenseMatrix>(matrix);
}

}  // namespace swizzle
