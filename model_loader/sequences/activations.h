// Activations: functions of their elements still to be applied, channels sorted and taken out, sums and products.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_ACTIVATIONS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_ACTIVATIONS_H_

#include <utility>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Returns the view of an activation that is made elsewhere: [batch, length, channels], or with `places` in the length's
// stead. REQUIRES: these are none, or a fixed length taken apart.
View ViewOfActivation(Context& context, const Shape& places, int64_t channels);

// The activation that a form stands for, a finished layer normalisation among them.
StatusOr<Tokens> AsTokens(Context& context, const Form& form);
// The same activation, its function applied.
StatusOr<Tokens> Materialised(Context& context, const Tokens& tokens);
// The same activation without a function, and the number, not 0, that it is still to be multiplied by. A function that
// is no such factor is applied.
StatusOr<std::pair<Tokens, double>> WithoutFactor(Context& context, const Tokens& tokens);
// The same activation, of all channels that the view goes through and in its order.
StatusOr<Tokens> Contiguous(Context& context, const Tokens& tokens);
// An activation whose last dimension is the channels, all in order.
StatusOr<Tokens> AsMatrix(Context& context, const Form& form);
// An activation whose last dimension is of channels alone, all in order: `groups` times as many as it says.
StatusOr<Tokens> AsGroups(Context& context, const Form& form, int64_t& groups);
// The same leading dimensions, the last one being all channels of `value`.
Tokens WithChannels(Context& context, const Tokens& like, int value);
// The sum, as a value of the new graph.
StatusOr<Tokens> AddTokens(Context& context, const Tokens& a, const Tokens& b);
// An element-wise operator that reads an activation.
StatusOr<Form> CombineTokens(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_ACTIVATIONS_H_
