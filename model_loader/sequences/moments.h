// Layer normalisation, written out or not, and means over the channels. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_MOMENTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_MOMENTS_H_

#include <vector>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// The normalised activation; `shift` may be empty. UNIMPLEMENTED before the normalisation is complete.
StatusOr<Form> FinishMoment(Context& context, const Moment& moment, std::vector<float> shift);
// An element-wise operator that takes a normalisation a stage further.
StatusOr<Form> CombineMoments(Context& context);
// `tokens` normalised, in groups of channels, scaled and shifted by these constant inputs, of one group; `shift` may be
// left out.
StatusOr<Form> LayerNormOf(Context& context, const Tokens& tokens, size_t scale, size_t shift, float usual_epsilon,
                           bool centred = true, int64_t groups = 1);
StatusOr<Form> InterpretReduceMean(Context& context);
// The lengths of vectors, which divide them to unit length.
StatusOr<Form> InterpretReduceL2(Context& context);
StatusOr<Form> InterpretLpNormalization(Context& context);
// By the root mean square, too: RMSNormalization, SimplifiedLayerNormalization.
StatusOr<Form> InterpretLayerNorm(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_MOMENTS_H_
