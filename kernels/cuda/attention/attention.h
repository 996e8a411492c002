// Dense attention of packed token sequences on a GPU, on CUDA cores: rows attention_rows_ and attention_nhwc_.
//
// A block takes a tile of queries of one sequence and head and meets the sequence's keys tile by tile; scores, softmax
// and the sum of values never leave the block. The softmax goes by a running maximum, and what was summed is scaled
// when that rises (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", NeurIPS 2022, section 3.1). No tile holds tokens of two sequences, or what it holds of another is
// masked, so what one request sends cannot reach another's results.
//
// The grid depends on the numbers of tokens and sequences alone: sequence i, of tokens begin to end, may take the tiles
// from begin / queries of a tile + i on, which are at least as many as it needs; blocks that find no work end at once.
// Tokens beyond the last sequence get zeros, as does a query whose keys all have the bias -infinity.
//
// With a pattern (rows sparse_attention_<layout>_dense_) scores that it lacks become -infinity, and tiles of keys that
// no query of the block attends to are left out.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsAttention(const Problem& problem);        // at most 65,535 heads of at most 256 channels
bool AcceptsMaskedAttention(const Problem& problem);  // of a pattern whose bits fit in 128 MiB, too
StatusOr<std::unique_ptr<PackedWeight>> PrepareMaskedAttention(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void Attend(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_H_
