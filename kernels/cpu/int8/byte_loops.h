// Loops over bytes that stand for real numbers, for each instruction set: plain loops that the compiler makes vectors
// of. Counts are elements. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_BYTE_LOOPS_H_
#define SWIZZLE_KERNELS_CPU_INT8_BYTE_LOOPS_H_

#include <cstdint>

#include "kernels/base/quantised.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

// y = fma(a, a_scale, fma(b, b_scale, offset)), rounded and held as steps say, but for their zero point: the offset has
// it already. In steps of the output, as ONNX Runtime adds.
struct SumSteps {
  float a_scale = 0.0f, b_scale = 0.0f, offset = 0.0f;
  OutputSteps output;
};

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    // Rounded to the nearest, ties to even, and held to 0 .. 255.
    void QuantiseRun(const float* from, int64_t count, const Quantised& to_be, uint8_t* to);
    void DequantiseRun(const uint8_t* from, int64_t count, const Quantised& are, float* to);
    // b may be null: it is zero then. `to` may be a or b. REQUIRES: count is a multiple of kPositionUnit.
    void AddRun(const uint8_t* a, const uint8_t* b, int64_t count, const SumSteps& steps, uint8_t* to);
    // Of each position of a panel, over `taps` rows that are `stride` apart: the largest byte, held as steps say.
    void LargestOfRows(const uint8_t* rows, int64_t taps, int64_t stride, const OutputSteps& steps, uint8_t* to);
    int32_t SumRun(const uint8_t* from, int64_t count);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_BYTE_LOOPS_H_
