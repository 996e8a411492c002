// Functions of an input that holds 0 and 1: masks of tokens, on the way to the attention. Internal to the recogniser
// (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_NUMBERS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_NUMBERS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// An element-wise operator, as both of its results and how they lie.
StatusOr<Form> CombineTokenNumbers(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_TOKEN_NUMBERS_H_
