// Attention of packed token sequences over kPanels in FP32, whose products are of factors rounded to bfloat16, with
// AVX512_BF16: row attention_panels_f32_avx512bf16. For plans in which these factors come of whole numbers of eight
// bits anyway (Numerics::kBfloat16Factors). Row attention_panels_bf16_avx512bf16, for plans in BF16, runs this on
// widened operands (widened.h).
//
// As attention.h has it: queries lie in lanes, keys and values are broadcast, and the softmax goes by a reference that
// follows the running maximum. What differs is that one instruction multiplies and adds two pairs in each lane. Queries
// and keys are put together in pairs of channels, values and their powers in pairs of keys. A thread does so with the
// keys and values of a sequence and head when it comes to their first queries, and keeps them for all others.
//
// Queries, keys, values and powers are rounded to the nearest, ties to even; scores, totals of the rounded powers, and
// sums are in FP32. Of operands that are bfloat16 already, an output is off by at most 4.1e-3 of the head's largest
// value: each power by 2^-9, and by 8.6e-5 as a polynomial, and twice that where they err apart. Other operands are off
// by 2^-9 themselves. Drawn from a normal distribution, with heads of 32 channels, outputs have 3.4e-3 of their size as
// noise.
//
// The result goes by nothing but the sequence: alone and in a batch it has the same bits.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BFLOAT16_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BFLOAT16_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// Room for the keys and values of one head of the longest possible sequence, for each thread.
size_t AttentionBfloat16WorkspaceBytes(const Problem& problem);

void AttentionBfloat16(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BFLOAT16_H_
