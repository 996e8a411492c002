// Dense attention of packed token sequences by Hopper's warpgroups: rows attention_nhwc_<type>_wgmma_sm90a and
// attention_rows_<type>_wgmma_sm90a. What it computes and what spare tokens get are as in attention.h.
//
// A warpgroup has 64 queries, a block one or two of them and tiles of the keys they share. Slabs of queries, keys
// and values come by the tensor memory accelerator from wherever a sequence begins, and products read them as they lie,
// in kRows transposed; scores stay in registers and become the left operand of the second product (Shah et al.,
// "FlashAttention-3", 2024, without its overlapping within a warpgroup: blocks of one multiprocessor overlap). What
// a slab holds beyond the sequence is masked, values to zero (they may be no numbers), and not stored.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WGMMA_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WGMMA_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Heads of 32, 64 or 128 channels, of values as of keys.
bool AcceptsAttentionWgmma(const Problem& problem);
// FP16 and BF16, in kNhwc or kRows.
template <Layout kLayout, DType kDType>
void AttendWgmma(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WGMMA_H_
