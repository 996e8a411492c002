// What the rows conv_csr_<type>_<isa> and conv_nchw_csr_<type>_<isa> run where rows of the weight share columns
// (vector_csr.h).
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/conv/vector_csr.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The workspace has room for blocks of VectorCsr::BlockColumns().
SWIZZLE_DECLARE_PER_TARGET(void ConvVector(const KernelArgs& args, const VectorCsr& weight, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_VECTOR_H_
