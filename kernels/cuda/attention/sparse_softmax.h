// Softmax of values * scale within each row of a pattern, on a GPU, in place; FP32 and FP16, computed in FP32.
//
// A warp holds a row of up to kLongRow values in registers, so that memory is read and written once; a thread block
// takes a longer one and reads it again from the cache. Accesses are 128 bits wide whatever a row starts at: it is read
// from the 16-byte boundary before it, and the neighbours' values are left out (the reverse-offset alignment of Gale et
// al., SC20, section 5.2.2).
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_SOFTMAX_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_SOFTMAX_H_

#include <cuda_runtime.h>

#include "kernels/cuda/attention/attention_pattern.h"

namespace swizzle::cuda {

struct SparseSoftmaxArgs {
  DType dtype = DType::kFloat32;  // kFloat32 or kFloat16
  const void* input = nullptr;    // [heads][pattern.value_stride()], 16-byte aligned
  void* output = nullptr;         // likewise; may be the input
  int heads = 1;
  float scale = 1.0f;  // positive
};

void SparseSoftmax(const SparseSoftmaxArgs& args, const DeviceAttentionPattern& pattern, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_SOFTMAX_H_
