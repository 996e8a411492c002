// Where the operands and the output of an attention lie: in places of their own, or queries, keys and values among the
// channels of one activation (Attention::packed). A view of what the call was given.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_OPERANDS_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_OPERANDS_H_

#include <cstdint>

#include "kernels/backend/kernel_args.h"
#include "kernels/cpu/tokens/token_layout.h"
#include "kernels/operator/problem.h"

namespace swizzle::cpu {

struct AttentionOperands {
  // All of FP32.
  explicit AttentionOperands(const KernelArgs& args)
      : queries(args.Input<float>(0)),
        keys(args.problem->attention().packed ? queries : args.Input<float>(1)),
        values(args.problem->attention().packed ? queries : args.Input<float>(2)),
        output(args.Output<float>()),
        bias(args.sequences->key_bias.empty() ? nullptr : args.sequences->key_bias.data()),
        scale(args.problem->attention().scale),
        group_size(args.problem->attention().group_size),
        first_key_channel(args.problem->attention().packed ? QueryChannels(*args.problem) : 0),
        first_value_channel(args.problem->attention().packed ? first_key_channel + KeyChannels(*args.problem) : 0),
        query_matrix(MatrixOf(args, 0)),
        key_matrix(args.problem->attention().packed ? query_matrix : MatrixOf(args, 1)),
        value_matrix(args.problem->attention().packed ? query_matrix : MatrixOf(args, 2)),
        output_matrix(args.problem->output.batch, args.problem->output.channels, args.problem->to.layout) {}

  // The head of keys and values that a head of queries reads.
  int64_t KeyHead(int64_t head) const { return head / group_size; }

  const float* queries;
  const float* keys;
  const float* values;
  float* output;
  const float* bias;  // of keys, or null
  float scale;
  int64_t group_size;
  int64_t first_key_channel, first_value_channel;  // of the operands that keys and values are in
  TokenMatrix query_matrix;
  TokenMatrix key_matrix;
  TokenMatrix value_matrix;
  TokenMatrix output_matrix;

 private:
  static TokenMatrix MatrixOf(const KernelArgs& args, int input) {
    const Extent extent = InputExtent(*args.problem, input);
    return {extent.batch, extent.channels, args.problem->from.layout};
  }
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_OPERANDS_H_
