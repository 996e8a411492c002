// Sparse attention by blocks of 128 queries and 128 keys on Hopper's tensor cores, FP16 and BF16, sums in FP32: what
// sparse_attention.h computes, for patterns whose nonzeros fill the blocks that they touch (blocks, wide bands). Blocks
// that are not full have masks.
//
// The schedule is that of Shah et al., "FlashAttention-3" (2024). A block of threads goes from tile to tile of 128
// queries of a head, the longest first. One thread asks for queries, keys and values by the tensor memory accelerator,
// a ring of stages ahead. Two warpgroups have 64 queries each; the product of the queries with the next keys runs
// beside that of the weights with the values, and an online softmax beside both.
//
// A query without keys gets zeros. A sequence's results take its own operands to be finite. The scale is positive.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_BLOCK_ATTENTION_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_BLOCK_ATTENTION_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/attention_pattern.h"

namespace swizzle::cuda {

// A pattern's blocks, in device memory. Immutable.
class AttentionBlocks {
 public:
  static constexpr int kSize = 128;  // queries, and keys
  static constexpr int32_t kFull = -1;

  struct Block {
    int32_t keys;  // the first one's number by kSize
    int32_t mask;  // its number, or kFull
  };

  // Whether blocks have at most so many times as many places as the pattern has nonzeros that they are worth it; masks
  // then take no more memory than a byte a nonzero.
  static bool Fit(const AttentionPattern& pattern);
  // REQUIRES: pattern.Validate() is OK.
  static StatusOr<AttentionBlocks> Make(const AttentionPattern& pattern);

  int64_t tokens() const { return tokens_; }
  int tiles() const { return static_cast<int>(order_.size()); }
  const int32_t* offsets() const { return offsets_.data(); }  // of each tile's blocks
  const int32_t* order() const { return order_.data(); }      // tiles, those of most blocks first
  const Block* blocks() const { return blocks_.data(); }
  const uint4* masks() const { return masks_.data(); }  // of each query of a block, a bit a key
  size_t bytes() const { return offsets_.bytes() + order_.bytes() + blocks_.bytes() + masks_.bytes(); }

 private:
  int64_t tokens_ = 0;
  DeviceArray<int32_t> offsets_, order_;
  DeviceArray<Block> blocks_;
  DeviceArray<uint4> masks_;
};

// Of sequences one after the other, each as long as the pattern; matrices begin with the first one's first token. What
// is no number in one of them reaches no other. REQUIRES: kFloat16 or kBFloat16, heads of 64 or 128 channels; from one
// head to the next whole tokens, or fewer elements than a token has.
void QueueBlockAttention(const SparseAttentionArgs& args, const AttentionBlocks& blocks, int sequences,
                         int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_BLOCK_ATTENTION_H_
