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
        first_key_channel(args.problem->attention().packed ? KeyChannels(*args.problem) : 0),
        first_value_channel(2 * first_key_channel),
        key_matrix(args.problem->input.batch, args.problem->input.channels, args.problem->from.layout),
        output_matrix(args.problem->output.batch, args.problem->output.channels, args.problem->to.layout),
        value_matrix(args.problem->attention().packed ? key_matrix : output_matrix) {}

  const float* queries;
  const float* keys;
  const float* values;
  float* output;
  const float* bias;  // of keys, or null
  float scale;
  int64_t first_key_channel, first_value_channel;  // of the operands that keys and values are in
  TokenMatrix key_matrix;                          // of queries and keys
  TokenMatrix output_matrix;
  TokenMatrix value_matrix;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_OPERANDS_H_
