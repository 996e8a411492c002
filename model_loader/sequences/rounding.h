// What quantises activations: QuantizeLinear and DequantizeLinear around what a linear layer reads make it one of whole
// numbers. Internal to the recogniser (recognise.h).
//
// Nothing else rounds: where sums, functions, layer norms or attention read such an activation, or where scores of
// attention are quantised, the real numbers that it was made of are taken. They are nearer to what was trained than
// rounded ones, and these layers have no faster kernels for whole numbers.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_ROUNDING_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_ROUNDING_H_

#include <optional>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

StatusOr<Form> InterpretQuantizeLinear(Context& context);
StatusOr<Form> InterpretDequantizeLinear(Context& context);

// How input `i` was quantised, if it is an activation that was.
std::optional<Quantisation> RoundingOf(Context& context, size_t i);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_ROUNDING_H_
