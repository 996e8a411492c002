// From the tokens of each sequence to one vector, fp32: rows select_token_<layout>_f32_base, which copy, and
// mean_tokens_<layout>_f32_<isa>, in kPanels and kNchw.
#ifndef SWIZZLE_KERNELS_CPU_TOKEN_REDUCTION_F32_H_
#define SWIZZLE_KERNELS_CPU_TOKEN_REDUCTION_F32_H_

#include "kernels/cpu/targets.h"
#include "kernels/kernel_table.h"

namespace swizzle::cpu {

template <Layout kLayout>
void SelectToken(const KernelArgs& args, Stream& stream);

extern template void SelectToken<Layout::kPanels>(const KernelArgs&, Stream&);
extern template void SelectToken<Layout::kNchw>(const KernelArgs&, Stream&);

SWIZZLE_DECLARE_PER_TARGET(  //
    void MeanTokensPanels(const KernelArgs& args, Stream& stream);
    void MeanTokensNchw(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKEN_REDUCTION_F32_H_
