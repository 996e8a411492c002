// What the rows conv_csr_<type>_<isa> and conv_nchw_csr_<type>_<isa> run where rows of the weight share columns
// (vector_csr.h).
#ifndef SWIZZLE_KERNELS_CPU_CONV_VECTOR_F32_H_
#define SWIZZLE_KERNELS_CPU_CONV_VECTOR_F32_H_

#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_csr.h"
#include "kernels/kernel_table.h"

namespace swizzle::cpu {

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    // layout: of the input. The workspace has room for blocks of VectorCsr::BlockColumns().
    void ConvVector(const KernelArgs& args, const VectorCsr& weight, Layout layout, Stream& stream);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_VECTOR_F32_H_
