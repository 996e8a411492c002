// Where sequences end that are read at the first token that holds a number, or the largest one: CLIP's texts, whose
// mark of the end ArgMax finds (Radford et al., 2021). Tokens behind it are not computed. Internal to the recogniser
// (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_ENDS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_ENDS_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

StatusOr<Form> InterpretArgMax(Context& context);
// What element-wise operators make of such places: others of another type, and places in all sequences one behind the
// other.
StatusOr<Form> CombineEndPlaces(Context& context);
// Places of the batch and in sequences, joined along dimension `axis` as GatherND takes them.
StatusOr<Form> JoinEndPlaces(Context& context, size_t axis);
// What Gather, GatherElements or GatherND takes of an activation at such places, its second input.
StatusOr<Form> TakeAtEnds(Context& context, int64_t axis);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_ENDS_H_
