// The inner parts of linear_csr_position_u8_vbmi: real activations in kPanels become bytes by position, in windows that
// weights in lanes read (lane_weight.h), and products leave as real numbers by row. For AVX-512 with VNNI and VBMI.
// Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_POSITION_LANES_H_
#define SWIZZLE_KERNELS_CPU_INT8_POSITION_LANES_H_

#include <cstdint>

#include "kernels/cpu/int8/lane_weight.h"

namespace swizzle::cpu {

// A unit of kPositionUnit positions, `rows` channels of each, `stride` floats apart: writes its windows,
// [window][16][64], and what its bytes stand for (PositionSteps).
void QuantiseWindows(const float* from, int64_t stride, int64_t rows, uint8_t* windows, float* scale, float* offset);

// Products of a chunk with the windows of a unit: [lane][64] floats from `products` on, 16 of each lane.
void MultiplyLanes(const LaneChunk& chunk, const uint8_t* windows, float* products);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_POSITION_LANES_H_
