// LSTM, GRU and RNN whose weights are known: their products are planned. Those with the inputs of all steps are one
// region of vectors for both directions; those with states are a plan for each direction and phase of a step
// (interpreter/operators/recurrent/recurrent.h), which every step runs. What gates do to their sums is the
// interpreter's.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_RECURRENCE_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_RECURRENCE_H_

#include <memory>
#include <optional>
#include <vector>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/network/network.h"
#include "model_loader/regions/planned_region.h"
#include "model_loader/regions/survey.h"

namespace swizzle::regions {

// What a recurrent node multiplies. Value type.
struct RecurrentLayers {
  Network of_inputs;               // rows [I] to [D*G*H], with the biases that are summed up from the start
  std::vector<Network> of_states;  // rows [H] to [gates of a phase * H], by direction and phase
  int64_t directions = 1;
  int64_t hidden = 0;

  // How many threads make a product of states: one, where directions keep all busy, or waiting for each other in every
  // step takes longer than the product.
  int StateThreads(int threads) const;
};

// UNIMPLEMENTED where the node is no such one, or its weights are not known, not FP32 or of other shapes than they have
// to be.
StatusOr<RecurrentLayers> LayersOfRecurrence(const Graph& graph, const Survey& survey, int node);

// The layers' plans.
struct RecurrentPlans {
  std::shared_ptr<const PlannedRegion> of_inputs;
  std::vector<std::shared_ptr<const PlannedRegion>> of_states;  // whose vectors are of one step
  bool by_all_threads = false;                                  // StateThreads is not 1
};

// The node as a part that takes all. REQUIRES: its layers' plans, in order.
interpreter::PartOfProgram MakeRecurrence(const Graph& graph, const Survey& survey, int node, RecurrentPlans plans);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_RECURRENCE_H_
