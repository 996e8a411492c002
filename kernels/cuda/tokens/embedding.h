// Rows of an embedding table on a GPU: rows embedding_rows_dense_ and embedding_nhwc_dense_. The table has the
// precision of the output. Spare tokens, whose ids mean nothing, take a row that the table has.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_EMBEDDING_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_EMBEDDING_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

template <Layout kLayout, DType kDType>
StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void Embedding(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_EMBEDDING_H_
