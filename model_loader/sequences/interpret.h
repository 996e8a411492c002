// What a node computes, by the forms of its inputs. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_INTERPRET_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_INTERPRET_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// The form of the node's first output. UNIMPLEMENTED says why it is unknown; all other errors end the walk.
StatusOr<Form> Interpret(Context& context);
// An operator that computes each element by itself (semantics/point_function.h), by the forms that its inputs have.
StatusOr<Form> InterpretElementwise(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_INTERPRET_H_
