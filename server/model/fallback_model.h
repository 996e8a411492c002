// A model that the interpreter runs, with plans for its regions (model_loader/regions): sessions gather requests
// into its inputs, as many rows at a time as rows_at_once.h finds best, and cut its outputs apart.
//
// ModelFacts::properties of such a model:
//   swizzle_fallback         "all": every node runs on the interpreter; "parts": what no region holds does
//   swizzle_fallback_reason  why the optimised plan does not take the model whole
//   swizzle_zeros            that zeros in weights bring nothing, and why, where that is so of all layers or of some
//   swizzle_fallback_nodes   operators of such nodes with their number, "Conv:3,Relu:3"
//   swizzle_regions          how many parts of the model are planned
//   swizzle_device_nodes     where it runs on a GPU: nodes between the regions that run there, too
//   swizzle_not_on_gpu       why it runs on the CPU, where there is a GPU that it was to run on
//   swizzle_kernels          the kernels of their layers, as those of a plan; so, where there are any, swizzle_format,
//                            swizzle_sparsity, swizzle_nnz and swizzle_dense_fallback_layers
//   swizzle_stored_bytes     bytes of the weights
//   swizzle_device, swizzle_threads  as those of a plan (server/plan_model.h)
#ifndef SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_
#define SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/load/loader.h"
#include "model_loader/regions/plan_regions.h"
#include "server/model/compute_turns.h"
#include "server/model/model.h"

namespace swizzle {

// How batches run.
struct FallbackRuns {
  int threads = 0;                                // per session; 0: all
  interpreter::Limits limits = {};                // a batch beyond them fails with RESOURCE_EXHAUSTED
  std::shared_ptr<ComputeTurns> turns = nullptr;  // they compute when it lets them; null: at any time
};

// The specification of a model served with no configuration. max_batch_size is 64 where the executor proves that rows
// are independent (batches then are of requests of the same dims), else 0: dims then are exactly the model's, free ones
// -1, and requests run alone. name, version and platform are the caller's to fill in. UNIMPLEMENTED if an input or
// output has no declared type or shape.
StatusOr<ModelSpec> DeriveInterpretedSpec(const interpreter::Program& program);

// The program with the inputs' dimensions that the specification fixes: requests have no other sizes, and regions are
// planned for those. As it was where the two do not fit.
std::shared_ptr<const interpreter::Program> WithServedInputs(std::shared_ptr<const interpreter::Program> program,
                                                             const ModelSpec& spec);

// `spec` is DeriveInterpretedSpec's, possibly changed by a configuration: tensors may stand in another order, outputs
// may be left out, free dimensions may be fixed. `regionals` are the model's program, planned for as many threads as
// `runs` has, one a device: sessions take them in turn. `backend`, the CPU's, and the devices must outlive the model.
// INVALID_ARGUMENT, naming the model and the tensor, if the specification does not fit the model; FAILED_PRECONDITION
// if no request can be computed.
StatusOr<std::shared_ptr<Model>> NewFallbackModel(ModelSpec spec, const std::string& reason,
                                                  std::vector<regions::RegionalProgram> regionals, Backend& backend,
                                                  const FallbackRuns& runs);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_FALLBACK_MODEL_H_
