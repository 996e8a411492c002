// Positions that count tokens which are not padding, as RoBERTa's do. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_COUNTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_COUNTS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Of a mask, or of whether ids are other than padding, along the sequence.
StatusOr<Form> InterpretCumSum(Context& context);
// An element-wise operator.
StatusOr<Form> CombineTokenCounts(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_COUNTS_H_
