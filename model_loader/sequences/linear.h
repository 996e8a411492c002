// Linear layers, and products that are none: those of attention. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_LINEAR_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_LINEAR_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// x times the constant input `weight`, [K, M] or, if `transposed`, [M, K], times alpha.
StatusOr<Tokens> LinearOf(Context& context, const Tokens& x, size_t weight, bool transposed, float alpha);
// x + beta * the constant input `bias`, per channel.
StatusOr<Tokens> WithBias(Context& context, const Tokens& x, size_t bias, float beta);
StatusOr<Form> InterpretGemm(Context& context);
StatusOr<Form> InterpretMatMul(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_LINEAR_H_
