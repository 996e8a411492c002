// Operators that only give elements another place: the view changes, the elements don't. Internal to the recogniser
// (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_REARRANGE_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_REARRANGE_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

StatusOr<Form> InterpretShape(Context& context);
StatusOr<Form> InterpretReshape(Context& context);
StatusOr<Form> InterpretFlatten(Context& context);
StatusOr<Form> InterpretTile(Context& context);
StatusOr<Form> InterpretTranspose(Context& context);
StatusOr<Form> InterpretSqueeze(Context& context);
StatusOr<Form> InterpretUnsqueeze(Context& context);
StatusOr<Form> InterpretExpand(Context& context);
StatusOr<Form> InterpretPad(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_REARRANGE_H_
