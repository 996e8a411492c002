// Attention as one operator: of the standard and of com.microsoft. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_ATTENTION_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_ATTENTION_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Of the standard.
StatusOr<Form> InterpretAttention(Context& context);
// Of com.microsoft: queries, keys and values from one weight.
StatusOr<Form> InterpretPackedAttention(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_ATTENTION_H_
