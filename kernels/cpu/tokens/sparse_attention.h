// Attention with a pattern, fp32, over its nonzeros alone: rows sparse_attention_nchw_pattern_f32_<isa>.
//
// Channels lie in the lanes of vectors: each nonzero is a dot product of a query and a key, and a multiple of a value
// added to the output (SDDMM, softmax and SpMM of Gale et al., "Sparse GPU Kernels for Deep Learning", SC20,
// section 7.3, one query at a time, so that no more scores are held than a query has keys). Threads take runs of
// queries with about as many nonzeros. Where queries of a block share most of their keys, the rows of attention.h
// with a pattern are faster: they share loads among queries, and leave out blocks of keys that nobody attends to.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_SPARSE_ATTENTION_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_SPARSE_ATTENTION_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareSparseAttention(const Weight& weight, const Problem& problem);
size_t SparseAttentionWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void SparseAttention(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_SPARSE_ATTENTION_H_
