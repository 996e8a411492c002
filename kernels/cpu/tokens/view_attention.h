// Attention of queries to as many keys as there are, in matrices that lie in memory as their makers left them, fp32:
// what stands between networks without sequences (model_loader/regions), with biases for pairs, and for any number of
// keys. The rows of the kernel table are in attention.h; both are made of the same tiles (attention_tiles-inl.h).
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_VIEW_ATTENTION_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_VIEW_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/backend/backend.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// For each sequence and head a matrix [tokens, channels], whose channels are neighbours; strides in floats. Plain
// value, in somebody else's memory.
template <typename Float>
struct TokenView {
  Float* data = nullptr;
  int64_t sequence_stride = 0;
  int64_t head_stride = 0;
  int64_t token_stride = 0;
};

// output = softmax(queries keys^T * scale + bias) values, in each sequence and head. All counts are positive.
struct ViewAttention {
  int64_t sequences = 1;
  int64_t heads = 1;
  int64_t query_count = 0, key_count = 0;    // of each sequence
  int64_t channels = 0, value_channels = 0;  // of each head: of queries and keys; of values and the output
  float scale = 1.0f;
  TokenView<const float> queries, keys, values;
  TokenView<float> output;
  // Of each query, a number a key, neighbours; a stride is 0 where they are the same. No data: zeros. Keys whose bias
  // is -infinity are left out; a query to which none is left gets zeros.
  TokenView<const float> bias;
  int64_t bias_turns = 0;  // so many sequences have biases, which those behind them have again, in turn; 0: all
};

// For each of a stream's threads.
size_t ViewAttentionWorkspaceBytes(const ViewAttention& attention, int threads);

// `workspace` is aligned to kBufferAlignment.
void AttendViews(const ViewAttention& attention, std::span<std::byte> workspace, Stream& stream);

SWIZZLE_DECLARE_PER_TARGET(  //
    void AttendViews(const ViewAttention& attention, std::span<std::byte> workspace, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_VIEW_ATTENTION_H_
