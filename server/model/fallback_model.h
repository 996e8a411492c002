// A model that the fallback executor runs: sessions gather requests into its inputs and cut its outputs apart.
//
// ModelFacts::properties of such a model:
//   swizzle_fallback         "all": every node runs on the fallback executor
//   swizzle_fallback_reason  why the optimised plan does not take the model
//   swizzle_fallback_nodes   operators with their number of nodes, "Conv:3,Relu:3"
//   swizzle_stored_bytes     bytes of the weights
//   swizzle_device, swizzle_threads  as those of a plan (server/plan_model.h)
#ifndef SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_
#define SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "model_loader/load/loader.h"
#include "server/model/model.h"

namespace swizzle {

// How batches run.
struct FallbackRuns {
  int threads = 0;               // per session; 0: all
  fallback::Limits limits = {};  // a batch beyond them fails with RESOURCE_EXHAUSTED
};

// The specification of a model served with no configuration. max_batch_size is 64 where the executor proves that rows
// are independent, else 0: dims then are exactly the model's, free ones -1, and requests run alone. name, version and
// platform are the caller's to fill in. UNIMPLEMENTED if an input or output has no declared type or shape.
StatusOr<ModelSpec> DeriveFallbackSpec(const fallback::Program& program);

// `spec` is DeriveFallbackSpec's, possibly changed by a configuration: tensors may stand in another order, outputs may
// be left out, free dimensions may be fixed. `backend` must outlive the model.
// INVALID_ARGUMENT, naming the model and the tensor, if the specification does not fit the model.
StatusOr<std::shared_ptr<Model>> NewFallbackModel(ModelSpec spec, const FallbackModel& model, Backend& backend,
                                                  const FallbackRuns& runs);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_
