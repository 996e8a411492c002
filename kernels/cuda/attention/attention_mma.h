// Dense attention of packed token sequences on tensor cores: rows attention_nhwc_<type>_mma_sm80, and with a pattern
// rows sparse_attention_nhwc_dense_<type>_mma_sm80. What it computes, its grid and what spare tokens get are as in
// attention.h.
//
// A warp has 16 queries and holds them, their scores of one tile of keys and their sums in registers; the warps of a
// block share tiles of keys and values in shared memory, where the next one arrives while one is worked on (Dao,
// "FlashAttention-2", 2023, section 3). Scores become the first operand of the second product where they stand: of
// FP16 and BF16 a lane holds the same elements of both (PTX ISA, "Matrix fragments for mma.m16n8k16"); in TF32, whose
// fragments differ, keys are numbered as a lane has them, which a sum does not mind. Weights are rounded to the type;
// in TF32 what that leaves is multiplied, too, so that only the factors which a model hands over are rounded.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Heads of at most 128 channels, a multiple of 16 bytes of them, and a pattern, if any, as AcceptsMaskedAttention has.
bool AcceptsAttentionMma(const Problem& problem);
// In kNhwc. FP32 is rounded to TF32.
template <DType kDType>
void AttendMma(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_H_
