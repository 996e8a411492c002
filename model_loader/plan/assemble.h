// Puts a program together from what was chosen: the kernel calls for each range of batch sizes, with the conversions
// between them, over one arena.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_ASSEMBLE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_ASSEMBLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/prepared_weights.h"
#include "model_loader/plan/run/program.h"
#include "model_loader/plan/weight_facts.h"

namespace swizzle {

// The kernels for batches up to this size.
struct BucketChoice {
  int64_t most = 0;  // rows, or tokens where there are sequences
  std::vector<Candidate> layers;
};

// The batches that a program runs.
struct AssembledFor {
  BatchSize largest;
  bool smaller_arenas = true;  // whether those of fewer rows have arenas of their own, by powers of two
};

struct Assembly {
  std::shared_ptr<const Program> program;
  int conversions = 0;  // in the list for the largest batches
  uint64_t hash = 0;    // see ExtendPlanHash; of all lists
};

// Takes the network, which keeps the weights that it has. choices: by rising size; the last serves all that are larger,
// too. REQUIRES: `weights` holds what the choices take.
Assembly Assemble(Backend& backend, Network network, AssembledFor batches, RunSettings settings,
                  const std::vector<BucketChoice>& choices, const PreparedWeights& weights, const WeightFacts& facts);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_ASSEMBLE_H_
