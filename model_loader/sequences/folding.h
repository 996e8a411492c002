// Operators whose inputs are the same for every request, computed: the arithmetic on constants and on shapes.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_FOLDING_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_FOLDING_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// Large constants, by the arithmetic that the passes fold constants with.
StatusOr<Form> EvaluateConstants(Context& context);
// Elements that go elsewhere as they are, so that they may be sizes that no number stands for.
StatusOr<Form> MoveKnown(Context& context);
// An element-wise operator.
StatusOr<Form> ComputeKnown(Context& context);
StatusOr<Form> InterpretConstantOfShape(Context& context);
StatusOr<Form> InterpretGatherElements(Context& context);
StatusOr<Form> InterpretIf(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_FOLDING_H_
