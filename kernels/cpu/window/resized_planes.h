// How a resize is cut into tasks, and what its workspace holds. Immutable values, thread-safe; a workspace belongs to
// one run.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_RESIZED_PLANES_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_RESIZED_PLANES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/window/window_tiles.h"
#include "kernels/operator/resampling.h"

namespace swizzle::cpu {

// What all output positions of one axis take, in arrays of their own; those of columns are followed by what a vector
// may read beyond them.
struct AxisTaps {
  int32_t* first;
  int32_t* second;
  float* weight;
};

// Output rows [first, first + rows) of an image, and the input rows that they take.
struct ResizeBand {
  int64_t image, first, rows;
  int64_t from_first, from_rows;
};

class ResizedPlanes {
 public:
  explicit ResizedPlanes(const Problem& problem);

  // Bands of all images.
  int64_t count() const { return problem_.output.batch * bands_per_image_; }
  // REQUIRES: FillTaps has been called with `rows`.
  ResizeBand BandAt(int64_t band, const AxisTaps& rows) const;

  int64_t from_floats() const { return from_floats_; }  // of a band's input rows, and what vectors read beyond
  int64_t to_floats() const { return to_floats_; }      // of its output rows, likewise
  int64_t row_floats() const { return row_floats_; }    // of one input row, likewise

  size_t WorkspaceBytes() const { return TableBytes() + problem_.threads * SlotBytes(); }

  AxisTaps Rows(std::span<std::byte> workspace) const;
  AxisTaps Columns(std::span<std::byte> workspace) const;
  void FillTaps(std::span<std::byte> workspace) const;

  // One thread's part of the workspace.
  struct Slot {
    float* from;  // from_floats()
    float* to;    // to_floats()
    float* row;   // row_floats()
    Run *from_runs, *to_runs;
  };
  Slot SlotOf(std::span<std::byte> workspace, int64_t slot) const;

  // The runs of a band's input rows and output rows, in planes that begin with them.
  std::span<const Run> FromRuns(const ResizeBand& band, Run* room) const;
  std::span<const Run> ToRuns(const ResizeBand& band, Run* room) const;

 private:
  size_t TableBytes() const;
  size_t SlotBytes() const;
  AxisTaps TapsIn(std::span<std::byte> workspace, size_t offset, int64_t padded) const;

  const Problem& problem_;
  int64_t band_rows_, bands_per_image_;
  int64_t from_rows_;  // of a band, at most
  int64_t from_floats_, to_floats_, row_floats_;
  int64_t padded_rows_, padded_columns_;  // of output axes, as vectors may read them
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_RESIZED_PLANES_H_
