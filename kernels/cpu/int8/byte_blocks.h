// The dense byte convolutions' own layout of a weight: quads of neighbouring columns, of four rows each, so that four
// rows share what was read of the columns. Rows and columns are filled up with zeros. Worked example, rows 2 instead of
// 4, quads 2 columns instead of 4: (a b c d), (e f g h) become ab ef cd gh.
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_BYTE_BLOCKS_H_
#define SWIZZLE_KERNELS_CPU_INT8_BYTE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend/kernel_args.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cpu {

// Some rows of such a weight, as cells read them.
struct BlockRows {
  static constexpr int kRows = 4;

  int64_t first_row = 0, rows = 0;   // first_row is a multiple of kRows
  int64_t quads = 0;                 // of a row
  const int32_t* weights = nullptr;  // [quad][kRows] of first_row
  const int32_t* start = nullptr;    // of all rows, from row 0 on
  const float* scale = nullptr;
};

class ByteBlocks final : public PackedWeight {
 public:
  explicit ByteBlocks(const ByteWeight& weight);

  size_t bytes() const override;
  int64_t rows() const { return rows_; }
  int64_t groups() const;
  int64_t quads() const { return quads_; }
  // Groups [begin, end) of rows.
  BlockRows Groups(int64_t begin, int64_t end) const;

 private:
  int64_t rows_;
  int64_t quads_;
  std::vector<int32_t> weights_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_BYTE_BLOCKS_H_
