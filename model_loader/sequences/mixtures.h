// Channels of one activation that are moved, multiplied by numbers that go by position, and summed: a rotary embedding,
// whatever the operators that an exporter wrote. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_

#include <optional>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// What an element-wise operator makes of a mixture, or of an activation and numbers by position.
StatusOr<Form> CombineMixtures(Context& context);
// Some neighbouring tokens of sequences of one length, whose channels are to be mixed; nothing for all else.
std::optional<Mixture> MixtureOfPart(Context& context, const MovedTokens& part);
// Has the node's inputs that are such be mixtures.
void MixPartInputs(Context& context);
// The first tokens as they are and all behind them turned, joined along dimension `axis`: embeddings of images turn
// patches alone (DINOv3, Siméoni et al., 2025).
StatusOr<Form> JoinTurned(Context& context, size_t axis);
// Joins channels of one activation.
StatusOr<Form> ConcatMixtures(Context& context, size_t axis);
// An activation times input `input`, which goes by position. UNIMPLEMENTED where it doesn't.
StatusOr<Form> TimesPositions(Context& context, const Form& form, size_t input);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_MIXTURES_H_
