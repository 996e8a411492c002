// A batcher of models that are made of others: it has no queue and no executors, but leads each request through the
// queues of its steps, where it shares batches with whatever else they are asked.
#ifndef SWIZZLE_SERVER_BATCHING_ENSEMBLE_BATCHER_H_
#define SWIZZLE_SERVER_BATCHING_ENSEMBLE_BATCHER_H_

#include <memory>
#include <vector>

#include "server/batching/batcher.h"
#include "server/model/ensemble_graph.h"
#include "server/model/model.h"
#include "server/telemetry/metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

// What runs a step.
struct EnsembleMember {
  std::shared_ptr<const void> owner;  // keeps the others
  const Model* model = nullptr;
  Batcher* batcher = nullptr;
  ModelMetrics* metrics = nullptr;
};

// `graph` is ConnectSteps' for the specifications of `model` and `members`, a member for each step.
//
// A step is submitted as soon as what it reads is there, on whatever thread made that. Where one fails, or is refused,
// so does the request, with its reason, once all that is under way has ended; tensors between steps count as bytes of
// the request (Request::budget), and are dropped once nobody reads them any more. The steps' own metrics count what
// they are asked as they count clients' requests. `clock` and `metrics` outlive the result; `metrics` may be null.
std::unique_ptr<Batcher> NewEnsembleBatcher(std::shared_ptr<const Model> model, EnsembleGraph graph,
                                            std::vector<EnsembleMember> members, Clock& clock, ModelMetrics* metrics);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_ENSEMBLE_BATCHER_H_
