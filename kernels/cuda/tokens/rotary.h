// Rotary position embedding of packed token sequences on a GPU: rows rotary_rows_dense_ and rotary_nhwc_dense_.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_ROTARY_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_ROTARY_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsRotary(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareRotary(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void Rotary(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_ROTARY_H_
