// From a mixture of channels to the canonical rotary embedding, and from numbers by position to one by position.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_ROTARY_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_ROTARY_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// What is computed by position has a row for so many; sequences that are longer are refused.
inline constexpr int64_t kMostComputedPositions = int64_t{1} << 15;

// The activation that a mixture is: pairs of channels that are turned, alike in all heads, and channels that stay.
// UNIMPLEMENTED for any other.
StatusOr<Tokens> RotatedOf(Context& context, const Mixture& mixture);
// The activation whose tokens are these numbers: positions that are computed, as sines and cosines. UNIMPLEMENTED where
// none goes by position.
StatusOr<Tokens> EmbeddedOf(Context& context, const PositionNumbers& numbers);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_ROTARY_H_
