// The positions of planes as tokens of packed sequences on a GPU: rows plane_tokens_rows_dense_ and
// plane_tokens_nhwc_dense_. Spare tokens get what is added alone.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_PLANE_TOKENS_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_PLANE_TOKENS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsPlaneTokens(const Problem& problem);
template <Layout kLayout>
StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void PlaneTokens(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_PLANE_TOKENS_H_
