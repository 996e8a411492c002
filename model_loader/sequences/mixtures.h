// Channels of one activation that are moved, multiplied by numbers that go by position, and summed: a rotary embedding,
// whatever the operators that an exporter wrote. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// What an element-wise operator makes of a mixture, or of an activation and numbers by position.
StatusOr<Form> CombineMixtures(Context& context);
// Joins channels of one activation.
StatusOr<Form> ConcatMixtures(Context& context, size_t axis);
// An activation times input `input`, which goes by position. UNIMPLEMENTED where it doesn't.
StatusOr<Form> TimesPositions(Context& context, const Form& form, size_t input);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_
