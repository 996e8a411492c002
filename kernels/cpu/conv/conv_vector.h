// Sparse convolution of weights whose rows share columns (vector_csr.h): rows conv_vector_f32_<isa> from kPanels,
// conv_nchw_vector_f32_<isa> from kNchw and, for 1x1 convolutions, conv_blocked16_vector_f32_<isa>; the first two also
// in bf16. As conv_csr.h, but that one load of activations serves four rows.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// Whether vectors of rows are nonzero in most places: elsewhere conv_csr.h is faster by far, and need not be raced.
bool HoldsVectors(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvVector(const Weight& weight, const Problem& problem);
size_t ConvVectorWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvVector(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_
