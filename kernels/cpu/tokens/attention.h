// Attention of packed token sequences, fp32: rows attention_<layout>_f32_<isa>, kPanels and kNchw, and with a pattern
// (AttentionBits) sparse_attention_<layout>_dense_f32_<isa>, where scores that the pattern lacks become -infinity, and
// blocks of keys that no query of a block attends to are left out.
//
// Queries lie in the lanes of vectors; keys and values are broadcast. A block of up to 64 queries of one sequence and
// head meets the sequence's keys block by block; the softmax goes by a reference that follows the running maximum, and
// what was summed is scaled when that rises (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018;
// Dao et al., "FlashAttention", NeurIPS 2022, section 3.1). No matrix of length by length is held: the workspace is a
// few blocks a thread, whatever the lengths.
//
// With biases of pairs (AttentionBiases) rows biased_attention_<layout>_dense_f32_<isa>: a block of keys has them, laid
// out as its scores are, added before the softmax; keys that are too far for any head are passed over.
//
// With vectors of places (AttentionPlaces) rows disentangled_attention_<layout>_dense_f32_<isa>: a block of keys has
// what they add to its scores laid out likewise (place_products-inl.h).
//
// Rows in bf16, of panels, run these on widened operands (widened.h).
//
// A query whose keys all have the bias -infinity gets zeros. Spare positions of kPanels are left alone.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

size_t AttentionWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void Attention(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_H_
