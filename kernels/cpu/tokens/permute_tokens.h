// Tokens of packed sequences in another order: rows permute_tokens_<layout>_dense_<type>_base, kPanels and kNchw.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_PERMUTE_TOKENS_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_PERMUTE_TOKENS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PreparePermuteTokens(const Weight& weight, const Problem& problem);
void PermuteTokens(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_PERMUTE_TOKENS_H_
