// Masks of pairs of places: from constants and comparisons of positions to the pattern of an attention. Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_PAIR_MASKS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_PAIR_MASKS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Makes pairs of the input; where it is a mask, for good, so that a constant is read once.
StatusOr<Pairs> AsPairs(Context& context, size_t input);
// An element-wise operator.
StatusOr<Form> CombinePairs(Context& context);
// A constant that is too large to be moved as it is.
StatusOr<Form> MovePairs(Context& context);
StatusOr<Form> InterpretTrilu(Context& context);
// Scores that a mask of pairs leaves. Every mask is read once for each use, whatever the number of attentions.
StatusOr<Scores> WithPairs(Context& context, Scores scores, const Pairs& pairs, MaskUse use);
// Whose mask is causal by its name alone.
StatusOr<Scores> WithCausalMask(Context& context, Scores scores);
// Scores with biases by distance in place of a mask that lets each token attend to itself and those before it: biases
// go with masks of tokens and with sequences that end before their rows do. As they were where the mask is another.
Scores WithoutCausalPattern(Scores scores);
// The canonical operator of attention whose scores have a pattern.
StatusOr<int> SparseAttentionOf(Context& context, const Scores& scores, int values);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_PAIR_MASKS_H_
