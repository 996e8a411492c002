// The sparse byte convolutions' own layout of a weight: nonzeros four at a time, as four bytes multiply and add at
// once.
//
// A strip is one row, or 2 or 4 neighbouring rows that are nonzero in about the same columns; its quads are four
// columns each, in which any of its rows is not zero. They are any four columns, or a block: four neighbours from a
// multiple of 4 on, which cells read interleaved. Strips are sorted by their number of quads, so that loops of one
// length follow one another; the last quad is filled with zero weights. Strips are first dealt out to slices of like
// work, so that threads may share a panel.
//
// Worked example, a row with nonzeros a, b, c, d, e in columns 0, 2, 3, 7, 9 of panels of 64 bytes a column:
//     weights (a b c d) (e 0 0 0)    offsets, in units of 8 bytes: 0 16 24 56 | 72 72 72 72
// In blocks:
//     weights (a 0 b c) (0 0 0 d) (0 e 0 0)    offsets 0 | 32 | 64
// In pairs, for AVX2, whose instruction adds two products and saturates: a positive weight goes with a negative one, or
// with one of its sign that leaves the sum of both within 128, else with a zero. If only c and d are negative, and a is
// the smallest, e the largest of the others:
//     weights (a 0 b d) (e c 0 0)    offsets 0 0 16 56 | 72 24 24 24
// Where rows name a column more than once (MakeWideByteWeight), a strip has it as often as the row that does so most
// often; strips of blocks and of pairs of columns: see QuadShape.
// Where the columns of a panel would leave the first cache, they are cut into parts, one after another: a strip has
// quads in each, sorted anew, and sums wait between parts.
//
// Offsets are 16-bit in units of 8 bytes, which addresses scale by; beyond 8191 columns they are columns in 32 bits.
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_QUAD_WEIGHT_H_
#define SWIZZLE_KERNELS_CPU_INT8_QUAD_WEIGHT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/kernel_args.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cpu {

// How a weight is cut into quads.
struct QuadShape {
  int32_t strip_rows = 1;  // 1, 2 or 4
  bool blocks = false;     // of four neighbouring columns
  bool pairs = false;      // of any columns of one row: the products of each two bytes add up to 16 bits
  bool operator==(const QuadShape&) const = default;
};

// Strips of like length, one after another.
struct QuadGroup {
  uint32_t strips;
  uint32_t quads;  // of each
};

// A slice of a weight, as cells read it: everything in the order of its strips.
struct QuadRows {
  static constexpr uint32_t kNoRow = ~uint32_t{0};  // fills the last strip

  QuadShape shape;
  std::span<const QuadGroup> groups;
  const int32_t* weights;        // four bytes each: [quad][row of the strip]
  const uint16_t* near_offsets;  // four a quad, of blocks one
  const uint32_t* far_columns;   // else null
  const uint32_t* rows;          // where each row stands in the output
  const int32_t* start;          // of its sum
  const float* scale;
  bool begins = true, ends = true;  // is the first part, the last
};

// Quads that all strips together have.
int64_t CountQuads(const ByteWeight& weight, const QuadShape& shape);

class QuadWeight final : public PackedWeight {
 public:
  // parts: more than one of strips of one row alone, not in pairs.
  QuadWeight(const ByteWeight& weight, const QuadShape& shape, int64_t slices, int64_t parts = 1);

  size_t bytes() const override;
  const QuadShape& shape() const { return shape_; }
  int64_t slices() const { return std::ssize(slices_) / parts_; }
  int64_t parts() const { return parts_; }
  // All parts of a slice have the same strips.
  QuadRows Slice(int64_t slice, int64_t part = 0) const;

 private:
  struct SliceBegin {
    size_t group, groups, row, quad;
  };

  void AddPart(const ByteWeight& weight, std::span<const std::vector<int32_t>> columns, int64_t part,
               std::vector<uint32_t> strips);
  // columns: of the strip, all that lie in one part.
  void AddStrip(const ByteWeight& weight, int64_t first_row, std::span<const int32_t> columns);
  void AddPairs(const ByteWeight& weight, int64_t row);
  void AddRow(const ByteWeight& weight, int64_t row);
  void AddOffset(int32_t column);

  const QuadShape shape_;
  const bool near_;
  const int64_t parts_;
  std::vector<SliceBegin> slices_;  // [slice][part]
  std::vector<QuadGroup> groups_;
  std::vector<int32_t> weights_;
  std::vector<uint16_t> near_offsets_;
  std::vector<uint32_t> far_columns_;
  std::vector<uint32_t> rows_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
};

// Four signed bytes, the first lowest.
int32_t PackQuad(const int8_t (&bytes)[4]);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_QUAD_WEIGHT_H_
