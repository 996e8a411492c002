// Constants of linear layers and of arithmetic on channels, as canonical operators take them. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_AFFINE_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_AFFINE_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace swizzle {

// x * scale + shift
struct ScaleAndShift {
  float scale = 1.0f;
  float shift = 0.0f;
};

// Add, Sub, Mul or Div.
bool IsArithmetic(std::string_view op);

// What `x op constant` amounts to, or `constant op x` where `constant_first`. REQUIRES: IsArithmetic(op), and Div's
// constant is its second operand.
ScaleAndShift AsScaleAndShift(std::string_view op, bool constant_first, float constant);

// weight = alpha times a layer's, as rows: [rows, depth] from [depth, rows] or, if `transposed`, from [rows, depth].
void MakeLinearWeight(std::span<const float> given, int64_t rows, int64_t depth, bool transposed, float alpha,
                      std::span<float> weight);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_AFFINE_H_
