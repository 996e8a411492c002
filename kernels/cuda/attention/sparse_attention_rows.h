// The rows sparse_attention_nhwc_pattern_ of the kernel table: sparse_attention.h over the sequences of a batch, one
// after the other, in FP32 and FP16, block_attention.h over all at once, in half types, and int8/attention_bytes.h over
// all at once, FP16 through bytes. Tokens beyond the last whole sequence get zeros. Each head has keys and values of
// its own: heads that share them (Attention::group_size) are left to attention.h and attention_mma.h.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_ROWS_H_

#include <cstddef>
#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsFusedAttention(const Problem& problem);  // up to 341 heads of 32, 64 or 128 channels, values' alike
StatusOr<std::unique_ptr<PackedWeight>> PrepareFusedAttention(const Weight& weight, const Problem& problem);
size_t FusedAttentionWorkspaceBytes(const Problem& problem);
void RunFusedAttention(const KernelArgs& args, Stream& stream);

bool AcceptsBlockAttention(const Problem& problem);  // heads of 64 or 128 channels, values' alike
bool HoldsFullBlocks(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockAttention(const Weight& weight, const Problem& problem);
void RunBlockAttention(const KernelArgs& args, Stream& stream);

bool AcceptsAttentionInParts(const Problem& problem);  // heads of 32, 64 or 128 channels, values' alike
StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionInParts(const Weight& weight, const Problem& problem);
size_t AttentionInPartsWorkspaceBytes(const Problem& problem);
void RunAttentionInParts(const KernelArgs& args, Stream& stream);

bool AcceptsByteAttention(const Problem& problem);  // heads of 64 or 128 channels, values' alike; 65,536 tokens
bool HoldsSharedKeys(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareByteAttention(const Weight& weight, const Problem& problem);
size_t ByteAttentionRowWorkspaceBytes(const Problem& problem);
void RunByteAttention(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SPARSE_ATTENTION_ROWS_H_
