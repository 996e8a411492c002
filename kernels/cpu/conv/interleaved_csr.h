// The sparse convolutions' own layout of a CSR weight.
//
// Columns are cut into blocks, so that a block's part of an activation panel stays in the first cache, or nearly, while
// all rows use it. Inside each block rows are sorted by their number of entries and interleaved kRows at a time, each
// row of a group padded with zero weights to the longest; with rows of like length next to each other that adds about 1
// %. Sorting is local to a block: it is the equal counts that pay (no remainders, trip counts that predict), not the
// order.
//
// Worked example, rows interleaved by 2 instead of 4:
//      1 0 0 2      counts 2, 0, 1, 2, sorted 0, 1, 2, 2: group 0 has rows 1 and 2 (length 1), group 1 rows 0 and 3
//      0 0 0 0      (length 2).
//      0 3 0 0      weights 0 3 | 1 4 2 5, columns 0 1 | 0 0 3 2
//      4 0 5 0
//
// Rows are first cut into slices of like work, each sorted and interleaved on its own: one a thread at least if rows
// suffice, so that threads may take whole slices of one panel and never meet in an output row, and so many that a slice
// stays in the second cache while several panels use it. A group that is not full repeats its last row, which is
// computed and stored twice. Entries are 6 bytes: the weight, and the column's offset in 16-bit.
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_CSR_H_
#define SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_CSR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/format/csr.h"

namespace swizzle::cpu {

struct RowPart;

class InterleavedCsr final : public PackedWeight {
 public:
  static constexpr int kRows = 4;
  // Columns of a block at most: their offsets fit 16 bits.
  static constexpr int64_t kMaxBlock = 512;
  static constexpr int64_t kOffsetUnit = kPositionUnit * sizeof(float);

  // Groups of equal length that lie one after another.
  struct Segment {
    uint32_t groups;
    uint32_t length;       // entries a row
    uint32_t first_group;  // its rows: rows() + kRows * first_group
    uint32_t first_entry;  // its entries: weights() and offsets() + kRows * first_entry
  };

  // Into how many blocks columns are best cut by rule of thumb, or into so many that they are about `scale` times as
  // long, kMaxBlock at most.
  static int64_t ChooseBlocks(const CsrMatrix& matrix, const CacheSizes& caches = HostCacheSizes(), double scale = 1.0);

  // threads: that will share a panel. A matrix of few rows makes fewer slices. caches: of the cores that will run it.
  // REQUIRES: blocks of equal length have kMaxBlock columns at most, as those of ChooseBlocks do.
  InterleavedCsr(const CsrMatrix& matrix, std::span<const float> bias, int threads, int64_t blocks,
                 const CacheSizes& caches = HostCacheSizes());
  InterleavedCsr(const CsrMatrix& matrix, std::span<const float> bias, int threads,
                 const CacheSizes& caches = HostCacheSizes())
      : InterleavedCsr(matrix, bias, threads, ChooseBlocks(matrix, caches), caches) {}

  size_t bytes() const override;
  int64_t cols() const { return cols_; }
  int64_t blocks() const { return blocks_; }
  int64_t slices() const { return slices_; }
  // The first row of a slice; for slice slices(), the number of rows.
  int64_t SliceBegin(int64_t slice) const { return slice_begin_[slice]; }
  int64_t BlockBegin(int64_t block) const { return cols_ * block / blocks_; }
  // Groups without entries are left out, save in the first and last block, where sums start and end.
  std::span<const Segment> segments(int64_t slice, int64_t block) const {
    const size_t cell = slice * blocks_ + block;
    return {segments_.data() + first_segment_[cell], segments_.data() + first_segment_[cell + 1]};
  }
  const uint32_t* rows() const { return rows_.data(); }
  const float* weights() const { return weights_.data(); }
  // Of an entry: (column - its block's begin) * kOffsetUnit, in bytes of a panel of kPositionUnit positions. One more
  // entry of every row may be read past the end.
  const uint16_t* offsets() const { return offsets_.data(); }
  const float* bias() const { return bias_.data(); }  // of each row, zero if the layer has none

 private:
  void PackCell(const CsrMatrix& matrix, int64_t first_row, int64_t last_row, int64_t block);
  void PackGroup(const CsrMatrix& matrix, int64_t block, const RowPart (&group)[kRows]);

  int64_t cols_;
  int64_t blocks_;
  int64_t slices_;
  std::vector<int64_t> slice_begin_;
  std::vector<uint32_t> first_segment_;  // of each (slice, block), and the end
  std::vector<Segment> segments_;
  std::vector<uint32_t> rows_;
  std::vector<float> weights_;
  std::vector<uint16_t> offsets_;
  std::vector<float> bias_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_CSR_H_
