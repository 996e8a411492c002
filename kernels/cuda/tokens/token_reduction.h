// From the tokens of each sequence to one vector on a GPU: rows select_token_ and mean_tokens_ of kRows and kNhwc. The
// output has a position for each sequence; spare sequences, which have no tokens, get zeros.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_TOKEN_REDUCTION_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_TOKEN_REDUCTION_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

template <Layout kLayout, DType kDType>
void SelectToken(const KernelArgs& args, Stream& stream);
template <Layout kLayout, DType kDType>
void MeanTokens(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_TOKEN_REDUCTION_H_
