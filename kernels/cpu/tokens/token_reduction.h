// From the tokens of each sequence to one vector, fp32: rows select_token_<layout>_f32_base, which copy, and
// mean_tokens_<layout>_f32_<isa>, in kPanels and kNchw; of panels likewise bf16.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_REDUCTION_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_REDUCTION_H_

#include <algorithm>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

void SelectToken(const KernelArgs& args, Stream& stream);

// The bias of this token and those after it; null where there is none.
inline const float* BiasFrom(const KernelArgs& args, int64_t token) {
  return args.sequences->key_bias.empty() ? nullptr : args.sequences->key_bias.data() + token;
}

// One over the number of tokens that count, of those in [begin, end); 1 where there are none.
inline float MeanScale(const KernelArgs& args, int64_t begin, int64_t end) {
  const float* bias = BiasFrom(args, 0);
  const int64_t tokens = bias == nullptr ? end - begin : std::count(bias + begin, bias + end, 0.0f);
  return 1.0f / static_cast<float>(std::max<int64_t>(tokens, 1));
}

SWIZZLE_DECLARE_PER_TARGET(void MeanTokens(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_REDUCTION_H_
