// The sparse convolutions' layout of a CSR weight whose rows share columns: vector-wise pruning (4x1, 8x1 and longer
// vectors, with or without a shuffle of rows: Huang et al., DAC22, "Shfl-BW"), blocks, and hardly any zeros.
//
// Rows are put into tiles of kRows. A tile has an entry for each column in which one of its rows is nonzero, with
// the weights of all its rows: a load of activations then serves kRows rows. Zeros that this adds are multiplied. Tiles
// take rows in their own order or, if that leaves fewer entries, sorted by their columns, which brings rows of one
// vector together wherever they lie.
//
// Worked example, tiles of 2 rows instead of 4:
//      1 0 2 0      sorted by columns: rows 0 and 2 (columns 0 2), 1 and 3 (column 3). Two tiles:
//      0 0 0 3      rows 0 2, columns 0 2, weights 1 4 2 5;  rows 1 3, column 3, weights 3 6.
//      4 0 5 0      fill 1. In their own order rows 0 and 1 would have three entries, and so would rows 2 and 3: 1/2.
//      0 0 0 6
//
// Columns are cut into blocks, tiles into slices of like work (see interleaved_csr.h). A tile that is not full repeats
// its last row, which is computed and stored twice. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_VECTOR_CSR_H_
#define SWIZZLE_KERNELS_CPU_CONV_VECTOR_CSR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/format/csr.h"

namespace swizzle::cpu {

class VectorCsr final : public PackedWeight {
 public:
  static constexpr int kRows = 4;
  // Columns of a block at most: of windows, which are gathered, and of 1x1 layers, whose columns are the input's own
  // (the rows that take them from other layouts than kPanels gather these, too).
  static constexpr int64_t kMaxGatheredBlock = 1024;
  static constexpr int64_t kMaxDirectBlock = 2048;
  static constexpr int64_t kOffsetUnit = kPositionUnit * sizeof(float);
  // Entries that may be read past the end.
  static constexpr int64_t kEntriesAhead = 8;

  // Columns of a block of this convolution.
  static int64_t BlockColumns(const Problem& problem, int64_t cols);

  // Whether three quarters of the entries' weights, at least, would be nonzero; not with unstructured zeros, which
  // InterleavedCsr is for.
  static bool IsFull(const CsrMatrix& matrix);

  VectorCsr(const CsrMatrix& matrix, std::span<const float> bias, const Problem& problem,
            const CacheSizes& caches = HostCacheSizes());

  size_t bytes() const override;
  int64_t cols() const { return cols_; }
  int64_t blocks() const { return blocks_; }
  int64_t slices() const { return static_cast<int64_t>(slice_begin_.size()) - 1; }
  // The first tile of a slice; for slice slices(), the number of tiles.
  int64_t SliceBegin(int64_t slice) const { return slice_begin_[slice]; }
  int64_t BlockBegin(int64_t block) const { return cols_ * block / blocks_; }
  const uint32_t* rows(int64_t tile) const { return rows_.data() + tile * kRows; }
  // A tile's entries in a block are those from EntryBegin(tile, block) to EntryBegin(tile, block + 1); entries of
  // neighbouring blocks are neighbours.
  int64_t EntryBegin(int64_t tile, int64_t block) const { return entry_begin_[tile * blocks_ + block]; }
  // kRows weights an entry.
  const float* weights() const { return weights_.data(); }
  // Of an entry: (column - its block's begin) * kOffsetUnit, in bytes of a panel of kPositionUnit positions.
  const uint32_t* offsets() const { return offsets_.data(); }
  const float* bias() const { return bias_.data(); }  // of each row, zero if the layer has none

 private:
  void PackTile(const CsrMatrix& matrix, const uint32_t* rows);
  void CutSlices(int threads, const CacheSizes& caches);

  int64_t cols_;
  int64_t blocks_;
  std::vector<uint32_t> rows_;         // kRows a tile
  std::vector<uint32_t> entry_begin_;  // of each (tile, block), and the end
  std::vector<int64_t> slice_begin_;   // in tiles, and the end
  std::vector<float> weights_;
  std::vector<uint32_t> offsets_;
  std::vector<float> bias_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_VECTOR_CSR_H_
