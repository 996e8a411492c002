// Products of a few rows with a matrix, fp32, which is read once where it lies: a library that first copies matrices
// into an order of its own takes ten times as long. Thread-safe: each call runs on the calling thread.
#ifndef SWIZZLE_KERNELS_CPU_CONV_FEW_ROWS_H_
#define SWIZZLE_KERNELS_CPU_CONV_FEW_ROWS_H_

#include <cstdint>

#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The operands of an Sgemm (sgemm.h), which cannot fail here.
struct FewRowsProduct {
  int64_t m = 0, n = 0, k = 0;
  SgemmOperand a, b;
  float* c = nullptr;
  int64_t c_stride = 0;
};

// Whether MultiplyFewRows takes it: up to four rows, which lie one element after another where b is transposed.
bool HasFewRows(const FewRowsProduct& product);

// With this machine's widest instructions. REQUIRES: HasFewRows(product); m, n, k > 0.
void MultiplyFewRows(const FewRowsProduct& product);

SWIZZLE_DECLARE_PER_TARGET(void MultiplyFewRows(const FewRowsProduct& product);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_FEW_ROWS_H_
