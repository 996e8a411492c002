// Operators that take a part of a value: channels, one token, as much of a table as sequences are long. Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_PARTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_PARTS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Of a form, the elements from `start` to `end` of one dimension, as Slice takes them.
StatusOr<Form> SliceAxis(Context& context, const Form& form, int64_t axis, const Whole& start, const Whole& end);
StatusOr<Form> InterpretSlice(Context& context);
StatusOr<Form> InterpretSplit(Context& context);
StatusOr<Form> InterpretGather(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_PARTS_H_
