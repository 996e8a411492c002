// What attention within windows adds to its scores, for each pair of a window's places: Swin Transformers' biases by
// relative position, alike in all windows, and their masks of shifted windows. Internal to the recogniser
// (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WINDOW_BIASES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WINDOW_BIASES_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Adds input `input`, a constant that broadcasts to the scores of a sequence's windows, times `sign`.
StatusOr<Scores> WithWindowBiases(Context& context, Scores scores, size_t input, double sign);
// What was added, zeros where nothing was.
Emitter::BiasTable WindowTableOf(Context& context, const Scores& scores);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WINDOW_BIASES_H_
