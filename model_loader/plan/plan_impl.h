// How a plan is put together, step by step. Only the planner includes this.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PLAN_IMPL_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PLAN_IMPL_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/step.h"

namespace swizzle {

// Adds layers in order, with the conversions between them. Used once.
class PlanBuilder {
 public:
  PlanBuilder(Backend& backend, Network network, BatchSize max_size, RunSettings settings);

  const Network& network() const { return network_; }

  // Prepares the layer's weight (and drops the network's) and appends its steps. Returns the bytes its kernel holds.
  StatusOr<int64_t> AddLayer(const Layer& layer, const Candidate& candidate);
  // Of `options`, those about micro-batches and measuring.
  StatusOr<std::shared_ptr<const Plan>> Finish(PlanReport report, const PlanOptions& options);

 private:
  // The slot that holds `value` in `layout`, converting it first if need be.
  int SlotIn(int value, Layout layout);
  int NewSlot(int value, Layout layout);
  int ConvertedSlot(int value, int from_slot, Layout layout);
  Bucket LayOut(BatchSize size) const;

  Backend& backend_;
  Network network_;
  const BatchSize max_size_;
  std::vector<int64_t> id_limits_;  // by input
  int64_t position_limit_ = 0;
  const RunSettings settings_;
  int conversions_ = 0;
  int layers_ = 0;     // added so far
  uint64_t hash_ = 0;  // see ExtendPlanHash; of the layers
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  std::map<int, std::map<Layout, int>> slots_of_value_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PLAN_IMPL_H_
