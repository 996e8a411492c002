// The inner parts of kernels that slide windows over bytes in kNhwc: a row of outputs at a time, 64 channels wide with
// AVX-512 and VNNI, 16 with AVX2. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_NHWC_CELLS_H_
#define SWIZZLE_KERNELS_CPU_INT8_NHWC_CELLS_H_

#include <array>
#include <cstdint>

#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

inline constexpr int64_t kNhwcChannels = 64, kNhwcPairChannels = 16;

// Some channels of a row of outputs, and the rows of the plane that its windows read.
struct NhwcRow {
  static constexpr int64_t kMostTaps = 16;  // each way

  // Row i of the windows; the plane's column 0. Rows outside the plane are `outside`, and a step of 0 bytes.
  std::array<const uint8_t*, kMostTaps> rows = {};
  std::array<int64_t, kMostTaps> steps = {};
  const uint8_t* outside = nullptr;  // what taps outside the plane read: 64 bytes
  int64_t width = 0;                 // of the plane
  Window window = {};
  uint8_t* output = nullptr;
  int64_t output_width = 0, output_step = 0;
  int64_t channels = 0;
};

// Of 64 channels: what sums start from, their scales, and quads of four rows' taps, [column][quad of rows][channel].
// Channels stand as unpacking leaves them: dword 4 l + i of vector j is channel 16 l + 4 j + i. Of 32 channels alone
// all stand twice.
struct NhwcTaps {
  const int32_t* start = nullptr;
  const float* scale = nullptr;
  const int32_t* quads = nullptr;
};

// With AVX-512 and VNNI, up to 64 channels.
void DepthwiseRow(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps);
void LargestRow(const NhwcRow& row, const OutputSteps& steps);
// The row as real numbers, [position][64 channels], in the order of the taps; and what they become when they are bytes.
void DepthwiseRealsRow(const NhwcRow& row, const NhwcTaps& taps, float* reals);
void RoundRow(const float* reals, const NhwcRow& row, const Quantised& to_be, const OutputSteps& steps);
// With AVX2, 16 channels. The taps' quads are pairs of 16-bit numbers, [column][pair of rows][channel], and dword 4 l +
// i of vector j is channel 8 l + 4 j + i.
void DepthwiseRowInPairs(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_NHWC_CELLS_H_
