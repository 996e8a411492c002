#include "kernels/operator/attributes.h"

#include <array>
#include <cstddef>

namespace swizzle {

std::string_view FunctionKindName(FunctionKind kind) {
  static constexpr std::array<std::string_view, kFunctionKindCount> kNames = {
      "Sigmoid", "Silu", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh", "Gelu", "GeluTanh"};
  const size_t index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace swizzle
