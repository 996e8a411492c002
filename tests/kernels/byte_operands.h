// Problems and weights in whole numbers, for tests of kernels.
#ifndef SWIZZLE_TESTS_KERNELS_BYTE_OPERANDS_H_
#define SWIZZLE_TESTS_KERNELS_BYTE_OPERANDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "kernels/format/weight.h"
#include "kernels/operator/problem.h"

namespace swizzle {

// Scales of bytes are powers of two, of sums that single precision has exactly: results may not be off at all, save
// averages, whose scale has the window in it.
inline constexpr float kByteScale = 1.0f / 128, kWeightScales[] = {1.0f / 128, 1.0f / 64};
inline constexpr float kBiasStep = kByteScale * kWeightScales[1];

// `problem` with whole numbers that every operand may be stored as.
inline Problem Quantise(Problem problem) {
  const Quantised input{DType::kUint8, kByteScale, 100}, other{DType::kUint8, 2 * kByteScale, 131};
  constexpr Op kKeepingScale[] = {Op::kMaxPool, Op::kConvertLayout, Op::kConcat,
                                  Op::kSlice,   Op::kResize,        Op::kDepthToSpace};
  const bool keeps_scale = std::ranges::find(kKeepingScale, problem.op) != std::end(kKeepingScale);
  problem.inputs_as.fill(keeps_scale ? input : other);
  problem.inputs_as[0] = input;
  problem.epilogue.requantise = keeps_scale ? input : Quantised{DType::kUint8, 8 * kByteScale, 120};
  return problem;
}

// What stands for a real number, as a float.
inline float StepOf(double value, const Quantised& as) {
  return static_cast<float>(std::clamp(std::nearbyint(value / as.scale) + as.zero_point, 0.0, 255.0));
}

// Values become what signed bytes stand for, by rows, or bytes of any zero point; zeros stay zeros and nothing else
// becomes one.
inline void RoundToBytes(DenseMatrix& matrix, Weight& weight, bool wide = false) {
  const float least = wide ? -255.0f : -128.0f, most = wide ? 255.0f : 127.0f;
  Quantisation quantisation;
  for (int64_t row = 0; row < matrix.rows; ++row) quantisation.scales.push_back(kWeightScales[row % 2]);
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const float scale = quantisation.scales[i / matrix.cols];
    float& value = matrix.values[i];
    if (value != 0) value = std::clamp(std::nearbyint(value / scale) + 0.0f, least, most) * scale;
    if (i % 7 == 0 && value != 0) value = (i % 2 == 0 ? least : most) * scale;
  }
  for (float& bias : weight.bias) bias = std::nearbyint(bias / kBiasStep) * kBiasStep;
  weight.quantisation = std::move(quantisation);
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_BYTE_OPERANDS_H_
