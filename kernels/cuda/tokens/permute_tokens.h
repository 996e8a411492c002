// Tokens of packed sequences in another order on a GPU: rows permute_tokens_rows_dense_ and permute_tokens_nhwc_dense_.
// Spare tokens get those of any.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_PERMUTE_TOKENS_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_PERMUTE_TOKENS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsPermuteTokens(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePermuteTokens(const Weight& weight, const Problem& problem);
inline constexpr Kernel kPermuteTokens = {.accepts = AcceptsPermuteTokens, .prepare = PreparePermuteTokens};
template <Layout kLayout, DType kDType>
void PermuteTokens(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_PERMUTE_TOKENS_H_
