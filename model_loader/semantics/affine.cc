#include "model_loader/semantics/affine.h"

namespace swizzle {

bool IsArithmetic(std::string_view op) { return op == "Add" || op == "Div" || op == "Mul" || op == "Sub"; }

ScaleAndShift AsScaleAndShift(std::string_view op, bool constant_first, float constant) {
  if (op == "Add") return {1.0f, constant};
  if (op == "Sub") return constant_first ? ScaleAndShift{-1.0f, constant} : ScaleAndShift{1.0f, -constant};
  if (op == "Mul") return {constant, 0.0f};
  return {1.0f / constant, 0.0f};
}

void MakeLinearWeight(std::span<const float> given, int64_t rows, int64_t depth, bool transposed, float alpha,
                      std::span<float> weight) {
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < depth; ++k) {
      weight[m * depth + k] = alpha * given[transposed ? m * depth + k : k * rows + m];
    }
  }
}

}  // namespace swizzle
