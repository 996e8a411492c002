// The columns that a convolution multiplies its weights with, one panel of output positions at a time.
//
// Row k = (channel * kernel_h + i) * kernel_w + j of a panel holds, for each output position, the input at tap (i, j)
// of the window there, and zero where the tap falls outside the plane. For a pointwise window over kPanels that is the
// input itself. Otherwise rows are gathered into a workspace on demand and in blocks, so that a block can be consumed
// while it is in the first cache; neighbouring output positions mostly read neighbouring input positions, so a plan of
// runs is made once a panel.
//
// Counts are floats unless named otherwise. An object and its workspace belong to one thread.
#ifndef SWIZZLE_KERNELS_CPU_IM2COL_H_
#define SWIZZLE_KERNELS_CPU_IM2COL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"

namespace swizzle::cpu {

class PanelColumns {
 public:
  // Whether the columns are the input itself.
  static bool IsDirect(const Problem& problem, Layout layout) {
    return layout == Layout::kPanels && problem.window.IsPointwise();
  }

  // What one object needs to serve blocks of up to `rows` rows; a multiple of kBufferAlignment.
  static size_t WorkspaceBytes(const Problem& problem, Layout layout, int64_t rows);

  // layout: of `input`, kPanels or kNchw. All must outlive the object.
  PanelColumns(const Problem& problem, Layout layout, const float* input, std::span<std::byte> workspace);

  // Rows [begin, end) of an output panel, each as wide as the panel; what spare positions hold is unspecified. Valid
  // until the next call. REQUIRES: begin - end is within what the workspace was sized for.
  const float* Rows(int64_t panel, int64_t begin, int64_t end);

 private:
  // Neighbouring positions of the panel whose inputs are evenly spaced, or all outside the plane.
  struct GatherRun {
    int64_t offset;          // of channel 0 in the input; -1: zeros
    int64_t channel_stride;  // from one channel to the next in the input
    int32_t length;
    int32_t step;  // from one position's input to the next; 0: only one position so far
  };
  struct Source {
    int64_t offset;
    int64_t channel_stride;
  };

  static int64_t Taps(const Problem& problem) { return int64_t{problem.window.kernel_h} * problem.window.kernel_w; }
  static size_t RunBytes(const Problem& problem);
  static size_t CountBytes(const Problem& problem);

  // Plans the runs of an output panel.
  void SetPanel(int64_t panel);
  // Where channel 0 of the input lies that output `position` reads at tap (i, j).
  Source SourceOf(int64_t position, int32_t i, int32_t j) const;
  // Takes one more position into `run`, if it fits.
  static bool Extend(GatherRun& run, const Source& source);
  static float* CopyRun(const GatherRun& run, int64_t channel, const float* input, float* to);

  const Problem& problem_;
  const Layout layout_;
  const float* const input_;
  const PanelGrid input_grid_;
  const PanelGrid output_grid_;
  GatherRun* const runs_;      // kMaxPanelWidth a tap
  int32_t* const run_counts_;  // of each tap
  float* const columns_;
  int64_t panel_ = -1;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_IM2COL_H_
