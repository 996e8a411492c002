// Sparse attention in whole numbers on a GPU, and its parts, over patterns whose queries share keys by eights (Li et
// al., "Magicube", SC 2022, section 5): queries, keys and values become signed bytes, SDDMM gives scores, softmax in
// FP32 of what they stand for gives shares as unsigned bytes, the largest of a query 255, and SpMM (spmm_bytes.h) gives
// outputs, which are divided by the shares' sum. Four launches. Shares of the sum would mostly round to zero: of 820
// keys, which 10 % of 8,192 are, the mean is 0.3 of 255.
//
// Other widths that were published: shares of 16 bits, of two digits (spmm_bytes.h), or of 4; queries, keys and values
// of 4 bits. What is of 4 bits is stored and moved as such, and multiplied as bytes. Plans have 8-8 alone.
//
// Each token of a head has scales of its own, the largest magnitude being 127 or 7: no token depends on what else is in
// the batch. The scales of a score are its query's and its key's. A value's is part of its key's shares, which are
// rounded with it, and of the sum that outputs are divided by without it.
//
// Scores and shares lie as the pattern is packed (byte_panels.h, every entry 1), by heads: scores of a step are [slot
// 32][query 8], shares as weights are, so that the SpMM reads what softmax wrote. Slots that hold no entry get scores
// that nobody reads, and shares of zero.
//
// SDDMM multiplies 16 keys with the eight queries of a panel at once (mma.m16n8k32), straight from memory: both have
// their depth innermost, and any order of it is right, so that a lane reads 16 bytes of a key and of a query.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_ATTENTION_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_ATTENTION_BYTES_H_

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/base/integers.h"
#include "kernels/cuda/int8/byte_panels.h"
#include "kernels/format/attention_pattern.h"

namespace swizzle::cuda {

// A pattern in panels of eight queries, in device memory. Immutable.
class KeyPanels {
 public:
  // REQUIRES: pattern.Validate() is OK. INVALID_ARGUMENT for none or more than BytePanels::kMostColumns tokens.
  static StatusOr<std::unique_ptr<KeyPanels>> Make(const AttentionPattern& pattern);

  // Whether eights of queries share their keys, so that a slot stands for kLeastShared entries or more on average, but
  // for those that fill steps up. Where they don't, most of what is computed is none of the pattern's.
  static constexpr int64_t kLeastShared = 4;
  static bool AreShared(const AttentionPattern& pattern);
  // Slots of any pattern of so many tokens and entries whose keys are shared.
  static int64_t MostSlots(int64_t tokens, int64_t nonzeros) {
    return nonzeros / kLeastShared + CeilDiv(tokens, int64_t{BytePanels::kRows}) * BytePanels::kStep;
  }

  const BytePanels& panels() const { return *panels_; }
  // Of each slot of each step, a bit for each query of the panel that has this key.
  const uint8_t* masks() const { return masks_.data(); }
  int64_t tokens() const { return panels_->rows(); }
  size_t bytes() const { return panels_->bytes() + masks_.bytes(); }
  int64_t slots() const { return panels_->steps() * BytePanels::kStep; }
  // Scores or shares of a head.
  int64_t head_values() const { return slots() * BytePanels::kRows; }

 private:
  std::unique_ptr<BytePanels> panels_;
  DeviceArray<uint8_t> masks_;
};

// Of 4, 8 or 16 bits, [sequences][tokens][heads][head dim], numbers of 4 bits two to a byte, the first one lower, those
// of 16 as two matrices of digits, the lower unsigned.
struct WholeHeads {
  const uint8_t* low = nullptr;
  const uint8_t* high = nullptr;  // of 16 bits
};

// What a launch computes: all sequences' heads, of which there are at most 65,535.
struct HeadCounts {
  int sequences = 1, heads = 1, head_dim = 64;  // 64 or 128; 256 for SDDMM alone
  int64_t channels() const { return int64_t{heads} * head_dim; }
};

// q * k^T at the pattern, exact where sums fit 32 bits: [sequence][head][step][slot][query].
void QueueSddmmBytes(const KeyPanels& pattern, const HeadCounts& counts, int bits, const WholeHeads& q,
                     const WholeHeads& k, int32_t* sums, cudaStream_t queue);

// 16-8, 8-8, 8-4 or 4-4.
struct AttentionBits {
  int shares = 8, operands = 8;
};

// Attention of FP16 in [sequences][tokens][channels]; `scale` is that of scores.
struct ByteAttention {
  HeadCounts counts;
  const __half *q = nullptr, *k = nullptr, *v = nullptr;
  __half* output = nullptr;
  float scale = 1;
  void* workspace = nullptr;  // aligned to kBufferAlignment
  AttentionBits bits = {};
};
size_t ByteAttentionWorkspaceBytes(int64_t tokens, int64_t slots, const HeadCounts& counts, AttentionBits bits = {});
void QueueByteAttention(const KeyPanels& pattern, const ByteAttention& attention, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_ATTENTION_BYTES_H_
