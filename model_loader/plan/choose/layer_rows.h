// Which rows of a backend's table could run a layer of a network.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYER_ROWS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYER_ROWS_H_

#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidate.h"

namespace swizzle {

// Null for layers without.
const Weight* WeightOf(const Network& network, const Layer& layer);

// Without times. `dense_only`: none that skips zeros. UNIMPLEMENTED, naming the layer, if there is none.
StatusOr<std::vector<Candidate>> LayerRows(const Backend& backend, const Network& network, const Layer& layer,
                                           RunSettings settings, bool dense_only);

// Whether all that the layer reads carries the eight bits of whole numbers and no more: it may be stored as such, or is
// made by products of such. Rows may then round it to bfloat16, which has as many (Numerics::kBfloat16Factors).
bool ReadsWholeNumbers(const Network& network, const Layer& layer);

// What devices may choose among. Where the model has no scales for a layer's input, so that bytes are the row's own
// (whole_numbers/position_weight.h), those in real numbers are as good a choice, but for plans in INT8. Then, and where
// it has scales, those that round less and are stored as others which don't are dropped: they would only take their
// share of the time for measuring.
void SettleForDevice(Precision precision, const Problem& problem, std::vector<Candidate>& candidates);

// Takes those away whose time goes by zeros of the input, of which no estimate knows; returns the others.
std::vector<Candidate>& KeepThoseOfAnyZeros(std::vector<Candidate>& candidates);

// Ways to run a layer for nothing: one that holds its input to the range of whole numbers that it is stored as already,
// and a transposition, whose result lies in kNhwc as its input does in kNchw, and the other way round.
std::vector<Candidate> LayerRenames(const Network& network, const Layer& layer);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LAYER_ROWS_H_
