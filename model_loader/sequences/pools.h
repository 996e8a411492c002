// Where sequences end: what makes one row of each. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_POOLS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_POOLS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// One token of each sequence, from 0, or from -1 backwards; dimension `axis`, the length, stays as 1 if `keep`.
StatusOr<Form> SelectTokenOf(Context& context, const Tokens& tokens, size_t axis, int64_t token, bool keep);
StatusOr<Form> InterpretGlobalAveragePool(Context& context);
// The mean of all tokens, where these dimensions, ascending, are all positions; else nothing.
StatusOr<std::optional<Form>> MeanOver(Context& context, const Tokens& tokens, const std::vector<int64_t>& axes,
                                       bool keep);
// Returns the mean of some of the tokens, where few are left out; else nothing.
StatusOr<std::optional<Form>> MeanOverPart(Context& context, const MovedTokens& part, const std::vector<int64_t>& axes,
                                           bool keep);
StatusOr<Form> InterpretReduceSum(Context& context);
// The mean of the tokens that a mask lets through: tokens times mask, summed, over the mask's sum.
StatusOr<Form> CombinePool(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_POOLS_H_
