// In which strips a weight's quads take least time (quad_weight.h). Pure functions.
#ifndef SWIZZLE_KERNELS_CPU_INT8_QUAD_COSTS_H_
#define SWIZZLE_KERNELS_CPU_INT8_QUAD_COSTS_H_

#include <cstdint>

#include "kernels/cpu/int8/quad_weight.h"

namespace swizzle::cpu {

enum class QuadKind : uint8_t {
  kRows,     // any columns of one row
  kPairs,    // the same, in pairs
  kVectors,  // of 2 or 4 rows that share columns
  kBlocks,   // of four neighbouring columns, of one row or of 2 or 4 that share them
};

// The shape of this kind that the weight takes least time in.
QuadShape FastestShape(const ByteWeight& weight, QuadKind kind);

// Whether it is so much faster than kRows that both need not be raced.
bool AreFasterThanRows(const ByteWeight& weight, QuadKind kind);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_QUAD_COSTS_H_
