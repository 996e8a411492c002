// One version of a model that serves.
#ifndef SWIZZLE_SERVER_REPOSITORY_SERVING_MODEL_H_
#define SWIZZLE_SERVER_REPOSITORY_SERVING_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/batching/batcher.h"
#include "server/model/inflight_bytes.h"
#include "server/model/model.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

// Kept alive by whoever uses it. An executor of it, on which calls may end, must not be what destroys it: it would wait
// for itself. Whoever lets go of it last therefore hands it to a thread that does (repository/retirement.h).
struct ServingModel {
  std::shared_ptr<Model> model;
  std::unique_ptr<ModelMetrics> metrics;
  std::unique_ptr<Batcher> batcher;    // last: it uses the two above
  std::string config_bytes;            // serialized inference.ModelConfig, for the ModelConfig RPC
  InflightBytes inflight;              // of its requests and their responses
  int depth = 0;                       // of an ensemble, more than that of any of its steps; drained before them
  uint64_t memory_share = 0;           // what of the rooms is its (repository/memory_claim.h); 0: nothing
  ServingModel* next_ended = nullptr;  // of those that wait to be destroyed
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_SERVING_MODEL_H_
