// The positions of planes as tokens of packed sequences, of which those behind the last row have none: rows
// plane_tokens_<layout>_dense_<type>_base, kPanels and kNchw.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_PLANE_TOKENS_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_PLANE_TOKENS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens(const Weight& weight, const Problem& problem);
void PlaneTokens(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_PLANE_TOKENS_H_
