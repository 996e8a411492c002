// Tells a tuning cache what every candidate of a network's layers takes, so that plans are chosen as if that had been
// measured.
#ifndef SWIZZLE_TESTS_SUPPORT_KNOWN_TIMES_H_
#define SWIZZLE_TESTS_SUPPORT_KNOWN_TIMES_H_

#include <vector>

#include "model_loader/plan/choose/layer_rows.h"
#include "model_loader/plan/choose/measured_sizes.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/fuse_layers.h"

namespace swizzle::testing {

// At all sizes that a plan with these options measures; microseconds_of(kernel) at each. REQUIRES: a stream of one
// thread; a free batch.
template <typename MicrosecondsOf>
void KnowTimes(Network network, Backend& backend, const PlanOptions& options, const MicrosecondsOf& microseconds_of) {
  FuseFor(backend, network);
  const BatchSize most(options.max_batch, network.sequences ? options.max_tokens : options.max_batch);
  const std::vector<int64_t> counts = MeasuredCounts(network, most, !HasHostMemory(backend), options.measured_batches);
  for (const Layer& layer : network.layers) {
    if (layer.op == Op::kReshape) continue;
    const Weight* const weight = WeightOf(network, layer);
    for (const BatchSize size : MeasuredSizes(network, most, counts)) {
      const Problem problem = LayerProblem(network, layer, size, 1);
      for (const Kernel* kernel : Candidates(backend, problem, weight, options.precision)) {
        options.tuning_cache->Add(*kernel, problem, weight == nullptr ? 0 : PatternHash(*weight),
                                  microseconds_of(*kernel));
      }
    }
  }
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_KNOWN_TIMES_H_
