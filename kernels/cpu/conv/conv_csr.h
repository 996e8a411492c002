// Sparse convolution, fp32, into kPanels: rows conv_csr_f32_<isa> from kPanels and conv_nchw_csr_f32_<isa> from kNchw,
// any window; likewise conv_csr_bf16_<isa> and conv_nchw_csr_bf16_<isa> for panels in bfloat16. A 1x1 convolution or
// linear layer over kPanels is an SpMM straight from the input. conv_blocked16_csr_f32_<isa>, for 1x1 convolutions,
// takes what oneDNN's layers write, without a conversion between.
//
// In bfloat16 a block's columns are widened into the first cache once, for all rows, and sums stay in floats of the
// thread's own until they are complete, so that the loop over entries is that of fp32.
//
// Sum over the columns of a block, keep the sums of kTileRows rows by a whole panel in registers, go on to the next
// rows; then the next block (see interleaved_csr.h). Each entry costs one broadcast and one load for every vector of
// positions, so a processor with two load ports and two FMA ports stays below its FMA peak by what else is loaded.
//
// Where rows of the weight share columns, one load serves several rows: conv_vector.h.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_CSR_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_CSR_H_

#include <memory>
#include <string_view>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// Lengths of blocks (Kernel::blockings). Times are kept by place in this list: what changes it raises
// kKernelTableVersion.
inline constexpr std::string_view kConvCsrBlockings[] = {"blocks as caches suggest", "blocks of 2/3", "blocks of 3/2"};

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsr(const Weight& weight, const Problem& problem);
size_t ConvCsrWorkspaceBytes(const Problem& problem);

// From kBlocked16 pointwise windows only.
bool AcceptsConvCsr(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvCsr(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_CSR_H_
