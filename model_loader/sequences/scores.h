// Products of queries and keys on their way through masks and a softmax to the canonical attention. Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_SCORES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_SCORES_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// queries [.., length, channels] times keys [.., channels, length]. of_one_query: all tokens of a sequence have the
// same query, which is there once, [.., 1, channels].
StatusOr<Form> ScoresOf(Context& context, const Tokens& queries, const Tokens& keys, double scale,
                        bool of_one_query = false);
// An activation's heads, [.., length, channels of a head], as a matrix that has them one behind the other.
struct HeadMatrix {
  int value = kNoValue;  // of the new graph
  double factor = 1.0;   // what it is still to be multiplied by
  int64_t heads = 1;
};
StatusOr<HeadMatrix> HeadsOf(Context& context, const Tokens& tokens);
// The canonical attention of these probabilities to `values` [.., length, channels].
StatusOr<Form> AttentionOf(Context& context, Scores scores, const Tokens& values);
// What the canonical operator is told of these probabilities and of `values`, whose heads are as many as the keys'.
Emitter::AttentionInputs InputsOf(const Scores& scores, int values);
// Scores of masked keys become less by `bias`, which is negative.
StatusOr<Form> MaskScores(Context& context, Scores scores, const TokenNumbers& mask, double bias);
// An element-wise operator that scales or masks.
StatusOr<Form> CombineScores(Context& context);
StatusOr<Form> InterpretSoftmax(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_SCORES_H_
