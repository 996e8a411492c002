// How kernels of whole numbers end: 32-bit sums become bytes, or real numbers, in single precision and in the order
// that ONNX Runtime has, so that whole graphs of them agree to the bit.
//
//   sum = sum of w * x over a row, plus the bias, less what the zero point of x adds: exact
//   v   = float(sum) * scale of the row
//   y   = v rounded to the nearest, ties to even, + zero_point, held to [low, high]
//
// With a function f, v = f(sum * scale, held to the clamp) / the output's scale, and [low, high] is the type's range.
//
// With a residual r of bytes, v = fma(r, residual_scale, fma(float(sum), scale, residual_offset)).
//
// Plain values, thread-safe.
#ifndef SWIZZLE_KERNELS_WHOLE_NUMBERS_STEPS_H_
#define SWIZZLE_KERNELS_WHOLE_NUMBERS_STEPS_H_

#include <cstdint>

#include "kernels/operator/problem.h"

namespace swizzle {

// What all rows of an output have in common.
struct OutputSteps {
  int32_t zero_point = 0;
  int32_t low = 0, high = 255;  // the clamp and the type's range
  float residual_scale = 0.0f;  // in steps of the output
  float residual_offset = 0.0f;
  float real_low = 0.0f, real_high = 0.0f;  // the clamp, where the output is real
};

// Of bytes that the problem's epilogue says the scale of; of real numbers where it names none.
OutputSteps StepsOf(const Problem& problem);

// The scale of a row in steps of the output, as ONNX Runtime multiplies and divides; in real numbers where these are
// what a function takes.
float ScaleInSteps(float input_scale, float weight_scale, const Problem& problem);

// Whether the problem's input, or output, is bytes in this layout.
bool ReadsBytes(const Problem& problem, Layout layout);
bool WritesBytes(const Problem& problem, Layout layout);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_WHOLE_NUMBERS_STEPS_H_
