// Sampled dense-dense matrix product on a GPU: a * b^T at a pattern, for each head; FP32 and FP16, sums in FP32.
//
// A warp takes a row of the pattern and holds its row of a in registers; eight lanes (four where rows are 64 bytes)
// take one nonzero each time and read its row of b in 128-bit pieces (Gale et al., "Sparse GPU Kernels for Deep
// Learning", SC20, section 6). Neighbouring rows share a thread block and, through the first cache, the rows of b that
// they have in common; blocks start in the order of their work. Where a pattern is dense, sddmm_tiles.h is faster.
//
// Tried on the seed pattern, where this takes 918 and 1,580 us in FP32 (head dim 64 and 128), 660 and 1,040 in FP16:
// - scores from fused attention's tiles (sparse_attention.h), written one by one where the pattern has them: 1,680 and
//   1,050 for head dim 128;
// - keys that four neighbouring rows have in common, half of the nonzeros, read once for all of them, by a kernel of
//   its own: 905, 1,434, 643 and 1,070, for a pattern two and a half times as large. What takes the time is the other
//   half, whose rows of b come at random;
// - two, four or eight rows a warp in turn, so that up to 128 rows share a cache: 885 to 1,170, 1,560 and more, 685 and
//   more, 1,105 and more.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_H_

#include <cuda_runtime.h>

#include "kernels/cuda/attention/attention_pattern.h"

namespace swizzle::cuda {

struct SddmmArgs {
  DType dtype = DType::kFloat32;  // of all operands: kFloat32 or kFloat16
  HeadMatrices a, b;
  int heads = 1;
  int head_dim = 64;       // 32, 64 or 128
  void* output = nullptr;  // [heads][pattern.value_stride()], in the order of col_indices; 16-byte aligned
};

void Sddmm(const SddmmArgs& args, const DeviceAttentionPattern& pattern, cudaStream_t queue);

// Some of a pattern's nonzeros, in device memory.
struct SampledRows {
  const uint32_t* offsets;  // [tokens + 1]
  const uint32_t* keys;     // by row
  const uint32_t* places;   // among the pattern's col_indices; null: each is at its own
};
// The same of these alone; nothing else is written.
void SampleRows(const SddmmArgs& args, const DeviceAttentionPattern& pattern, const SampledRows& rows,
                cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_H_
