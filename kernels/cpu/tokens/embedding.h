// Rows of an embedding table, fp32: row embedding_dense_f32_base (kNchw). It copies memory, which no instruction set
// does better than the C library.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_EMBEDDING_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_EMBEDDING_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding(const Weight& weight, const Problem& problem);
void RunEmbedding(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_EMBEDDING_H_
