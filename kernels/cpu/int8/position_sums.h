// How sums end that lie position by position, as oneDNN's do: rounded, clamped and added to as those of our own rows
// (whole_numbers/steps.h), whose bits they have. For AVX-512 with VNNI. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_POSITION_SUMS_H_
#define SWIZZLE_KERNELS_CPU_INT8_POSITION_SUMS_H_

#include <cstdint>

#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

// Some channels of some positions.
struct PositionSums {
  const int32_t* sums = nullptr;  // [positions][channels]
  int64_t positions = 0;
  int64_t channels = 0;
  const int32_t* start = nullptr;  // what is still to be added to the sums of each channel
  const float* scale = nullptr;    // of each channel
  int64_t stride = 0;              // elements from a position of the output, and the residual, to the next
};

// residual: null where none is added.
void EndInBytes(const PositionSums& of, const OutputSteps& steps, const uint8_t* residual, uint8_t* to);
// Clamped.
void EndInReals(const PositionSums& of, const OutputSteps& steps, float* to);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_POSITION_SUMS_H_
