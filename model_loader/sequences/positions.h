// Numbers that count: the positions of a sequence's tokens and the places of sequences in the batch. Internal to the
// recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_POSITIONS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_POSITIONS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// An element-wise operator.
StatusOr<Form> CombinePositions(Context& context);
StatusOr<Form> InterpretRange(Context& context);
// Places in the batch and in the sequence, joined to pairs for GatherND.
StatusOr<Form> InterpretConcat(Context& context);
// An input's tokens by such pairs.
StatusOr<Form> InterpretGatherND(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_POSITIONS_H_
