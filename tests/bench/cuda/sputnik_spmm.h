// A baseline for cuda_spmm_bench: SpMM as Sputnik does it (Gale et al., "Sparse GPU Kernels for Deep Learning", SC20,
// section 5), written from the paper: Y[M,N] = W[M,K] X[K,N], row-major, fp32, CSR with 32-bit indices.
//
// A CTA is one warp of four subwarps (more, where kX is under 32); a subwarp owns a row and kX columns, walks the row
// 32 entries at a time through shared memory, starts rows at the last aligned entry before them and masks what is
// foreign (reverse-offset alignment), pre-scales column indices, and takes the rest of a row in steps of four over
// zeroed shared memory. Parts can be left out, as in the paper's ablation. Not thread-safe; everything is device
// memory. REQUIRES: n and stride are multiples of 4.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_SPUTNIK_SPMM_H_
#define SWIZZLE_TESTS_BENCH_CUDA_SPUTNIK_SPMM_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace swizzle::bench {

struct SputnikMatrix {
  int32_t rows;
  const int32_t* row_order;  // by falling length, or as they are where balancing is left out
  const int32_t* row_offsets;
  const int32_t* columns;
  const float* values;  // columns and values on 16 bytes, and 4 more may be read
};

struct SputnikParts {
  int columns = 64;  // of a subwarp, kX: 8, 16, 32 or 64
  bool vector_loads = true;
  bool prescaled = true;
  bool unrolled_residue = true;
};

void QueueSputnikSpmm(const SputnikMatrix& matrix, const float* x, float* y, int32_t n, int32_t stride,
                      const SputnikParts& parts, cudaStream_t queue);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_SPUTNIK_SPMM_H_
