// Dense linear layers on plain [tokens, features] matrices, fp32: rows linear_dense_f32_<isa> (kNchw, planes of one
// position). They spare layers between kernels that want tokens whole, such as layer norms and attention between
// regions, the conversions to panels and back, and a batch the last panel's spare positions.
//
// It is the product of conv_dense.h with its sides exchanged: vectors hold neighbouring output features, and what is
// broadcast are the tokens' inputs. A tile keeps the sums of a few tokens by up to 64 features in registers, over a
// block of the input features, of which the weights stay in the second cache for all tokens. Every weight is read once
// for up to kChunkTokens tokens, so that a model whose weights exceed the caches waits for memory no more often than it
// has to; and the next block's are asked for, a few lines in every run of input features, while this one is multiplied.
#ifndef SWIZZLE_KERNELS_CPU_CONV_LINEAR_DENSE_H_
#define SWIZZLE_KERNELS_CPU_CONV_LINEAR_DENSE_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

bool AcceptsLinearDense(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearDense(const Weight& weight, const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void LinearDense(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_LINEAR_DENSE_H_
