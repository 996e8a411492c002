// cuSPARSE's product of two CSR matrices, whose result is CSR, too. Errors of CUDA end the program.
#ifndef SWIZZLE_TESTS_BENCH_SEEDS_SPARSE_BY_SPARSE_H_
#define SWIZZLE_TESTS_BENCH_SEEDS_SPARSE_BY_SPARSE_H_

#include <cuda_runtime.h>
#include <cusparse.h>

#include "kernels/format/csr.h"

namespace swizzle::bench {

// Microseconds, the median of a few, from operands in device memory to the result's values; FP32. The result is not
// kept. Without graphs, which it does not take.
double TimeSparseBySparse(cusparseHandle_t handle, const CsrMatrix& left, const CsrMatrix& right, cudaStream_t queue);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_SEEDS_SPARSE_BY_SPARSE_H_
