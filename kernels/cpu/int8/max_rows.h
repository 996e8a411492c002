// The largest of windows over planes of bytes in kFullPanels, row by row of outputs: row max_pool_u8_vbmi. A channel's
// positions lie 64 at a time, from panel to panel; copied one behind the other, for a band of the rows of the plane,
// any 128 neighbours of a row are two loads. The largest of the window's rows comes first, then that of its columns.
// Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_MAX_ROWS_H_
#define SWIZZLE_KERNELS_CPU_INT8_MAX_ROWS_H_

#include <cstdint>

#include "kernels/operator/problem.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

// Rows of outputs of one image, of some neighbouring channels.
struct MaxBand {
  static constexpr int64_t kChannels = 8;  // at most

  const uint8_t* input = nullptr;
  uint8_t* output = nullptr;
  int64_t image = 0, first_row = 0, rows = 0;
  int64_t first_channel = 0, channels = 0;
};

// How a problem is cut into bands.
struct MaxBands {
  // Whether 128 neighbours have all that some outputs read.
  static bool Fit(const Window& window);
  // REQUIRES: Fit(problem.window()).
  explicit MaxBands(const Problem& problem);

  int64_t rows = 0;           // of each band, at most
  int64_t channel_bytes = 0;  // of a channel's part of the workspace
  int64_t workspace_bytes() const { return MaxBand::kChannels * channel_bytes; }
};

// workspace: as MaxBands says, aligned to 64 bytes. With VBMI.
void LargestOfBand(const Problem& problem, const MaxBand& band, const OutputSteps& steps, int64_t channel_bytes,
                   uint8_t* workspace);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_MAX_ROWS_H_
