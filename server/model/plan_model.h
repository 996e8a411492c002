// A model that runs a plan: sessions gather requests into the plan's inputs and scatter its outputs.
//
// ModelFacts::properties of such a model (decimal numbers; bytes are of weights and biases):
//   swizzle_format        formats of the stored weights with the number of layers, "csr:13,dense:15"
//   swizzle_sparsity      share of zeros in all weights, "0.8731"
//   swizzle_nnz           nonzero weights
//   swizzle_dense_bytes   had all weights been dense
//   swizzle_stored_bytes  as their formats hold them
//   swizzle_device_bytes  as the kernels hold them in memory
//   swizzle_device        the device's name
//   swizzle_threads       per executor
//   swizzle_micro_batch   rows, or tokens, of a larger batch that are computed at once
//   swizzle_kernels       kernels with the number of layers that run on them, at some batch size,
//                         "conv_csr_f32_avx512:13,..."
//   swizzle_dense_fallback_layers  sparse weights for which a dense kernel was faster, at some batch size
// and of one that takes sequences of tokens:
//   swizzle_ids.INPUT     how many ids the input may hold, from 0 on, "30522"
//   swizzle_mask.INPUT    "1": its ones are the tokens that count
//   swizzle_max_length    of a sequence, in tokens
#ifndef SWIZZLE_SERVER_MODEL_PLAN_MODEL_H_
#define SWIZZLE_SERVER_MODEL_PLAN_MODEL_H_

#include <memory>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/plan/run/plan.h"
#include "server/model/compute_turns.h"
#include "server/model/model.h"

namespace swizzle {

// The max_batch_size of a model served with no configuration, where its batch dimension is free.
inline constexpr int64_t kDerivedMaxBatchSize = 64;

// The specification of a network served with no configuration: inputs, outputs, and max_batch_size,
// kDerivedMaxBatchSize where the batch dimension is free, else 0. name, version and platform are the caller's to fill
// in; whatever a configuration says is set afterwards.
ModelSpec DeriveSpec(const Network& network);

ModelFacts FactsOf(const PlanReport& report);

// Thread-safe.
class PlanModel : public Model {
 public:
  // Sessions on this device run the plan, of the same network, from their next batch on; none is lost, and when this
  // returns nothing runs on the plan before. RESOURCE_EXHAUSTED if memory for it can't be had: sessions then go on with
  // what they have. REQUIRES: calls don't overlap.
  virtual Status ReplacePlan(size_t device, std::shared_ptr<const Plan> plan) = 0;
};

// `spec` is DeriveSpec's, possibly changed by a configuration: tensors may stand in another order, outputs may be left
// out, a dimension may be -1 (spec() of the model then says what it is), and max_batch_size may be anything up to
// plan->max_batch(). A network with a free batch may be given max_batch_size 0: dims then carry the batch dimension,
// and requests run alone.
// INVALID_ARGUMENT, naming the model and the tensor, if the specification does not fit the plan.
// `plans` are of the same network, one a device: sessions take them in turn. On the CPU they compute when `turns` lets
// them; null: at any time.
StatusOr<std::shared_ptr<PlanModel>> NewPlanModel(ModelSpec spec, std::vector<std::shared_ptr<const Plan>> plans,
                                                  std::shared_ptr<ComputeTurns> turns = nullptr);
StatusOr<std::shared_ptr<PlanModel>> NewPlanModel(ModelSpec spec, std::shared_ptr<const Plan> plan);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_PLAN_MODEL_H_
