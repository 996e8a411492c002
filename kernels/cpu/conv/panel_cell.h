// What the convolutions into kPanels share: the unit of their work, and how a problem is cut into such units.
#ifndef SWIZZLE_KERNELS_CPU_CONV_PANEL_CELL_H_
#define SWIZZLE_KERNELS_CPU_CONV_PANEL_CELL_H_

#include <cstdint>
#include <span>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/conv/im2col.h"
#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16.h"

namespace swizzle::cpu {

// Output rows that are summed together; packed weights interleave so many.
inline constexpr int kTileRows = 4;

// What this memory will be needed for next, asked for a little at a time while something else is computed.
// Single-owner.
class Prefetcher {
 public:
  // Asks for `first`, then `second`, in `steps` steps.
  Prefetcher(std::span<const std::byte> first, std::span<const std::byte> second, int64_t steps)
      : next_(first.data()),
        end_(next_ + first.size()),
        second_(second),
        batches_(CeilDiv(static_cast<int64_t>(first.size() + second.size()), kBatch * steps)) {}

  void Step() {
    for (int64_t i = 0; i < batches_; ++i) AskForBatch();
  }

 private:
  static constexpr int64_t kLine = 64;
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

  const std::byte* next_;
  const std::byte* end_;
  std::span<const std::byte> second_;
  int64_t batches_;  // a step
};

// Some rows of one panel, and a block of the columns they are summed over. Pointers are to row 0 of the panel; null if
// there is none.
struct PanelCell {
  const float* columns;  // the block's first row
  float* sums;           // the output, or floats of the thread's own where that is bfloat16
  const float* residual;
  Bfloat16* rounded_output;  // where the output is bfloat16; so is rounded_residual
  const Bfloat16* rounded_residual;
  const float* bias;
  int64_t width;  // of the panel
  Epilogue epilogue;
  bool first;  // block: sums start from the bias, not from what `sums` hold
  bool last;   // block: the epilogue follows

  // The cell of the positions from `positions` on.
  PanelCell From(int64_t positions) const {
    PanelCell cell = *this;
    cell.columns += positions;
    cell.sums += positions;
    if (residual != nullptr) cell.residual += positions;
    if (rounded_output != nullptr) cell.rounded_output += positions;
    if (rounded_residual != nullptr) cell.rounded_residual += positions;
    return cell;
  }
};

// Slices [first, last) of the rows of one panel.
struct PanelPart {
  int64_t panel;
  int64_t first_slice;
  int64_t last_slice;
};

// Threads that will have to share a panel where the batch is one, so that each is given a few cells.
int ThreadsPerPanel(const Problem& problem);

// Slices that a weight is cut into, as far as it has rows for them: each takes a quarter of the second cache at most,
// and threads that share a panel get as many each. With three for two threads one would compute two (1024x1024x49 at 90
// % zeros took 109 us on two Zen 4 cores; 94 with four slices). More would only add padding.
int64_t WeightSlices(int64_t weight_bytes, int threads_per_panel, const CacheSizes& caches);

// A convolution into kPanels, run by all threads of a stream. The rows of the weight come in slices.
class PanelConv {
 public:
  // block_rows: rows of the columns that one cell takes at most.
  static size_t WorkspaceBytes(const Problem& problem, int64_t block_rows) {
    return problem.threads * (SumBytes(problem) + PanelColumns::WorkspaceBytes(problem, block_rows));
  }

  PanelConv(const KernelArgs& args, int64_t block_rows, const float* bias, int64_t slices);

  // Calls run(columns, cell, part, next part) so that every slice of every panel is covered once; `next` is what the
  // same thread is given next, if anything (else it is `part`). Columns that are gathered serve all slices of a panel
  // in turn. Otherwise a slice of the weights, small enough for the second cache, serves some panels in turn.
  template <typename Run>
  void ForEachPart(CpuStream& stream, const Run& run) const {
    const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
      const std::span<std::byte> workspace = args_.workspace.subspan(slot * slot_bytes_, slot_bytes_);
      const size_t sum_bytes = SumBytes(*args_.problem);
      PanelColumns columns(*args_.problem, args_.inputs[0], workspace.subspan(sum_bytes));
      auto* const sums = reinterpret_cast<float*>(workspace.first(sum_bytes).data());
      PanelPart part = PartAt(begin, end);
      while (begin < end) {
        begin += part.last_slice - part.first_slice;
        const PanelPart next = begin < end ? PartAt(begin, end) : part;
        run(columns, Cell(part.panel, sums), part, next);
        part = next;
      }
    };
    stream.ParallelRanges(grid_.count() * slices_, run_range, Grain());
  }

  // Rows [begin, end) of a panel of the output.
  std::span<const std::byte> OutputRows(int64_t panel, int64_t begin, int64_t end) const;
  // Rows [begin, end) of a panel of the input where they are the columns, else none.
  std::span<const std::byte> InputRows(int64_t panel, int64_t begin, int64_t end) const;
  // Input and output together do not fit the cores' second caches: it pays to ask for what comes next.
  bool ExceedsCache() const { return exceeds_cache_; }
  // Nor does one panel of the input, where its rows are the columns, beside what else a core needs.
  bool PanelExceedsCache() const { return panel_exceeds_cache_; }

 private:
  // Of the sums that a thread keeps of a panel whose output is bfloat16; a multiple of kBufferAlignment.
  static size_t SumBytes(const Problem& problem) {
    if (!IsBfloat16(problem.to)) return 0;
    return static_cast<size_t>(problem.output.channels * kMaxPanelWidth) * sizeof(float);
  }
  // The cell of a panel's whole sum; columns, first and last are left to the caller.
  PanelCell Cell(int64_t panel, float* sums) const;
  // Cells that one thread should take together: what is gathered for a panel serves those of its slices that the same
  // thread is given.
  int64_t Grain() const;
  // The part that begins with cell `begin`, of cells in the order of computation, and ends before cell `end`.
  PanelPart PartAt(int64_t begin, int64_t end) const;

  const KernelArgs& args_;
  const bool rounds_;  // the output is bfloat16
  const size_t slot_bytes_;
  const float* const bias_;
  const int64_t slices_;
  const PanelGrid grid_;
  const bool exceeds_cache_;
  const bool panel_exceeds_cache_;
  int64_t panels_per_group_ = 1;  // that a slice serves in turn
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_PANEL_CELL_H_
