// Products of plain fp32 matrices, for code that shapes its own loops around them: through oneDNN, but for few rows.
//
// Thread-safe: each call runs on the calling thread alone, so that a stream's threads can share a larger product.
#ifndef SWIZZLE_KERNELS_CPU_CONV_SGEMM_H_
#define SWIZZLE_KERNELS_CPU_CONV_SGEMM_H_

#include <cstdint>

#include "kernels/base/status.h"

namespace swizzle::cpu {

// A row-major matrix in somebody else's memory; `stride` elements from row to row. Transposed: read as its transpose.
struct SgemmOperand {
  const float* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// Has oneDNN generate all code for it, by a product of each kind, if that was not done yet: once a process. A server
// does it before it serves, and before address space is short. RESOURCE_EXHAUSTED where it is.
Status PrepareSgemm();

// c = a * b, where a is [m, k], b is [k, n] and c is row-major [m, n] with `c_stride` elements from row to row.
// m, n and k may be 0. Prepares it, if nobody has. Fails where oneDNN does: without memory for its copies, or for
// strides shorter than rows.
Status Sgemm(int64_t m, int64_t n, int64_t k, const SgemmOperand& a, const SgemmOperand& b, float* c, int64_t c_stride);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_SGEMM_H_
