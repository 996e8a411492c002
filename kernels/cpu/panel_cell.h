// What the convolutions into kPanels share: the unit of their work, and how a problem is cut into such units.
#ifndef SWIZZLE_KERNELS_CPU_PANEL_CELL_H_
#define SWIZZLE_KERNELS_CPU_PANEL_CELL_H_

#include <cstdint>
#include <span>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/im2col.h"
#include "kernels/kernel_table.h"

namespace swizzle::cpu {

// Output rows that are summed together; packed weights interleave so many.
inline constexpr int kTileRows = 4;

// What this memory will be needed for next, asked for a little at a time while something else is computed.
// Single-owner.
class Prefetcher {
 public:
  // Asks for `first`, then `second`, in `steps` steps.
  Prefetcher(std::span<const float> first, std::span<const float> second, int64_t steps)
      : next_(first.data()),
        end_(next_ + first.size()),
        second_(second),
        batches_((static_cast<int64_t>(first.size() + second.size()) + kBatch * steps - 1) / (kBatch * steps)) {}

  void Step() {
    for (int64_t i = 0; i < batches_; ++i) AskForBatch();
  }

 private:
  static constexpr int64_t kLine = 64 / sizeof(float);
  static constexpr int64_t kBatch = 4 * kLine;

  void AskForBatch() {
    if (next_ >= end_) {
      next_ = second_.data();
      end_ = next_ + second_.size();
      second_ = {};
      if (next_ >= end_) return;
    }
    for (int64_t line = 0; line < kBatch; line += kLine) __builtin_prefetch(next_ + line, 0, 2);
    next_ += kBatch;
  }

  const float* next_;
  const float* end_;
  std::span<const float> second_;
  int64_t batches_;  // a step
};

// Some rows of one panel, and a block of the columns they are summed over. Counts in floats.
struct PanelCell {
  const float* columns;   // the block's first row
  float* output;          // row 0 of the panel
  const float* residual;  // likewise; null if there is none
  const float* bias;      // of row 0
  int64_t width;          // of the panel
  Epilogue epilogue;
  bool first;  // block: sums start from the bias, not from what the output holds
  bool last;   // block: the epilogue follows
};

// Slices [first, last) of the rows of one panel.
struct PanelPart {
  int64_t panel;
  int64_t first_slice;
  int64_t last_slice;
};

// A convolution into kPanels, run by all threads of a stream. The rows of the weight come in slices.
class PanelConv {
 public:
  // block_rows: rows of the columns that one cell takes at most.
  static size_t WorkspaceBytes(const Problem& problem, Layout layout, int64_t block_rows) {
    return problem.threads * PanelColumns::WorkspaceBytes(problem, layout, block_rows);
  }

  PanelConv(const KernelArgs& args, Layout layout, int64_t block_rows, const float* bias, int64_t slices);

  // Calls run(columns, part, next part) so that every slice of every panel is covered once; `next` is what the same
  // thread is given next, if anything (else it is `part`). Columns that are gathered serve all slices of a panel in
  // turn. Otherwise a slice of the weights, small enough for the second cache, serves some panels in turn.
  template <typename Run>
  void ForEachPart(CpuStream& stream, const Run& run) const {
    stream.ParallelRanges(grid_.count() * slices_, [&](int64_t slot, int64_t begin, int64_t end) {
      PanelColumns columns(*args_.problem, layout_, args_.inputs[0],
                           args_.workspace.subspan(slot * slot_bytes_, slot_bytes_));
      PanelPart part = PartAt(begin, end);
      while (begin < end) {
        begin += part.last_slice - part.first_slice;
        const PanelPart next = begin < end ? PartAt(begin, end) : part;
        run(columns, part, next);
        part = next;
      }
    });
  }

  // The cell of a panel's whole sum; columns, first and last are left to the caller.
  PanelCell Cell(int64_t panel) const;

  // Rows [begin, end) of a panel of the output.
  std::span<const float> OutputRows(int64_t panel, int64_t begin, int64_t end) const {
    const int64_t width = grid_.Width(panel);
    return {args_.output + grid_.Begin(panel) * args_.problem->output.channels + begin * width,
            static_cast<size_t>((end - begin) * width)};
  }
  // The columns of a panel where they are the input itself, else empty.
  std::span<const float> InputPanel(int64_t panel) const;
  // Input and output together do not fit a core's second cache: it pays to ask for panels ahead.
  bool ExceedsCache() const;

 private:
  // The part that begins with cell `begin`, of cells in the order of computation, and ends before cell `end`.
  PanelPart PartAt(int64_t begin, int64_t end) const;

  const KernelArgs& args_;
  const Layout layout_;
  const size_t slot_bytes_;
  const float* const bias_;
  const int64_t slices_;
  const PanelGrid grid_;
  int64_t panels_per_group_ = 1;  // that a slice serves in turn
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_PANEL_CELL_H_
