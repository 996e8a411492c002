#include "model_loader/semantics/affine.h"

#include <algorithm>

#include "kernels/format/transpose.h"

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
  if (transposed) {
    std::ranges::copy(given, weight.begin());
  } else {
    Transpose(given, depth, rows, weight);
  }
  if (alpha == 1.0f) return;
  for (float& element : weight) element *= alpha;
}

}  // namespace swizzle
