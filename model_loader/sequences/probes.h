// Vectors that no request and no position changes, on their way through linear layers to the one query that attends to
// all tokens: attention pooling, as in SigLIP (Lee et al., Set Transformer, 2019; Zhai et al., 2022). Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_PROBES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_PROBES_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Whether the first factor of a product of matrices is such vectors, in sequences of a fixed length, and the other a
// constant matrix or keys.
bool MeetsProbe(Context& context);
// Their product: again such vectors, or the scores of one query. REQUIRES: MeetsProbe.
StatusOr<Form> MultiplyProbe(Context& context, double alpha, bool transposed);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_PROBES_H_
