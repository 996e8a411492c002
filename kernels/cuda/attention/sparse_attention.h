// Sparse attention on a GPU: y = softmax(q k^T * scale) v over each query's keys, FP32 and FP16, sums in FP32.
//
// Fused: an online softmax (Milakov and Gimelshein, 2018; Dao et al., "FlashAttention", 2022) over AttentionTiles, so
// that no score is ever stored. A thread block owns a tile of queries of one head, a warp one group of it. Blocks of
// keys and values stream through shared memory; of each, a warp multiplies just the keys in its group's list, gathered
// by their rows, on the tensor cores: keys are the 16 rows of S^T = K Q^T and the depth of O^T = V^T P^T. Full groups
// take the keys in order, without masks. FP32 goes as three FP16 products of scaled parts (operand.cuh), for
// which keys and values are split into the workspace first. Memory beyond the operands: the tiles, and FP32's workspace
// of as much as keys and values.
//
// Measured on an H200 (tests/bench/results/cuda_attention_h200.json): where most far keys are drawn at random, 4.5 % of
// the square, it beats dense attention in FP32 three- to fourfold, but in FP16 cuDNN's dense kernel is 1.4 times
// faster; blocks of 128 at that density are 3.8 times faster than that (block_attention.h: 8.3 times).
//
// In parts: SDDMM (by tiles, sddmm_tiles.h), sparse softmax and a product of the weights with the values, through a
// workspace of a value for each nonzero and head, and FP32's parts of the keys.
//
// A query without keys gets zeros. Operands must be finite (rows that no query attends to included: they may be
// multiplied by zero), the scale positive. All only queue work.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/sddmm_tiles.h"

namespace swizzle::cuda {

struct SparseAttentionArgs {
  DType dtype = DType::kFloat32;  // of all operands: kFloat32 or kFloat16
  HeadMatrices queries, keys, values;
  MutableHeadMatrices output;
  int heads = 1;
  int head_dim = 64;  // 32, 64 or 128
  float scale = 1.0f;
};

// How a pattern of this structure has to be cut for FusedSparseAttention.
AttentionTileShape FusedTileShape(DType dtype, int head_dim, const AttentionStructure& structure);

size_t FusedWorkspaceBytes(const SparseAttentionArgs& args, int64_t tokens);
// REQUIRES: tiles.shape() is what FusedTileShape gives for the type and head dim, whatever the structure; at most 341
// heads; a workspace of that many bytes, aligned to 16; sm_80 or later, with 227 KB of shared memory for a block
// (sm_90).
void FusedSparseAttention(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles,
                          std::span<std::byte> workspace, cudaStream_t queue);

// For a pattern of so many tokens and nonzeros.
size_t SparseAttentionWorkspaceBytes(const SparseAttentionArgs& args, int64_t tokens, int64_t nonzeros);
// `tiles` are of the pattern, or none. REQUIRES: a workspace of that many bytes, aligned to 16.
void SparseAttentionInParts(const SparseAttentionArgs& args, const DeviceAttentionPattern& pattern,
                            const DeviceSddmmTiles& tiles, std::span<std::byte> workspace, cudaStream_t queue);

// y = weights * values: the last of the three parts. `weights` as SddmmArgs::output (sddmm.h).
void PatternSpmm(const SparseAttentionArgs& args, const DeviceAttentionPattern& pattern, const void* weights,
                 cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_H_
