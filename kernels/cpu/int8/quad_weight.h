// The sparse byte convolutions' own layout of a weight: each row's nonzeros four at a time, from any columns, as four
// bytes multiply and add at once.
//
// Rows are sorted by their number of quads, so that loops of one length follow one another; the last quad of a row is
// filled with zero weights. Rows are first dealt out to slices of like work, so that threads may share a panel.
//
// Worked example, a row with nonzeros a, b, c, d, e in columns 0, 2, 3, 7, 9 of panels of 64 bytes a column:
//     weights (a b c d) (e 0 0 0)    offsets, in units of 8 bytes: 0 16 24 56 | 72 72 72 72
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
#include "kernels/cpu/int8/byte_weight.h"

namespace swizzle::cpu {

// Rows of like length, one after another.
struct QuadGroup {
  uint32_t rows;
  uint32_t quads;  // of each
};

// A slice of a weight, as cells read it: everything in the order of its rows.
struct QuadRows {
  std::span<const QuadGroup> groups;
  const int32_t* weights;  // four bytes each
  const uint16_t* near_offsets;
  const uint32_t* far_columns;  // else null
  const uint32_t* rows;         // where each row stands in the output
  const int32_t* start;         // of its sum
  const float* scale;
};

class QuadWeight final : public PackedWeight {
 public:
  QuadWeight(const ByteWeight& weight, int64_t slices);

  size_t bytes() const override;
  int64_t slices() const { return static_cast<int64_t>(slices_.size()); }
  QuadRows Slice(int64_t slice) const;

 private:
  struct SliceBegin {
    size_t group, groups, row, quad;
  };

  std::vector<SliceBegin> slices_;
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
