// Sparse linear layers of few requests, fp32, on plain [batch, features] matrices: rows linear_csr_f32_avx512 and
// linear_csr_f32_avx2 (kNchw, planes of one position). Sums of neighbouring outputs stand in a vector, where kernels
// over panels have positions, of which there is one. What the nonzeros of a row multiply is picked out of registers:
// input features go in groups that fill one or two, and a step of a group takes one nonzero of each row of a block, its
// place in the group being what a shuffle goes by. So nothing is gathered from memory, and a weight is read once for
// several requests.
//
// A block's steps in a group are as many as its fullest row has nonzeros there, so that lanes of others idle: at 90 %
// zeros half of them.
#ifndef SWIZZLE_KERNELS_CPU_CONV_LINEAR_CSR_H_
#define SWIZZLE_KERNELS_CPU_CONV_LINEAR_CSR_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// Accepts what the dense row does (onednn_linear.h). For the row of each instruction set.
StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearCsrAvx512(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearCsrAvx2(const Weight& weight, const Problem& problem);

namespace N_AVX3 {
void LinearCsr(const KernelArgs& args, Stream& stream);
}
namespace N_AVX2 {
void LinearCsr(const KernelArgs& args, Stream& stream);
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_LINEAR_CSR_H_
