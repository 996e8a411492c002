// How a plan is put together, step by step, and how it runs. Only the planner includes this.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PLAN_IMPL_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PLAN_IMPL_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model_loader/plan/arena.h"
#include "model_loader/plan/candidates.h"
#include "model_loader/plan/plan.h"

namespace swizzle {

// One kernel call. inputs and output are slots: buffers of the arena.
struct Step {
  const Kernel* kernel = nullptr;
  std::shared_ptr<const PackedWeight> weight;
  Problem problem;                             // at batch 1; ProblemAt sets the batch
  bool tokens_in = false, tokens_out = false;  // whether input and output are per token
  std::vector<int> inputs;
  int output = -1;
  int layer = -1;       // that it computes; none for conversions
  bool serial = false;  // where a batch is small (serial_steps.h)

  Problem ProblemAt(BatchSize size) const {
    Problem sized = problem;
    sized.input.batch = tokens_in ? size.tokens : size.rows;
    sized.output.batch = tokens_out ? size.tokens : size.rows;
    return sized;
  }
};

// One value in one layout. A reshape makes no slot of its own: its output shares its input's.
struct Slot {
  NetworkValue value;
  Layout layout = Layout::kNchw;
  int first_step = 0;  // that writes it
  int last_step = 0;   // that reads it
};

// The arena for batches up to this size. Small batches use a compact prefix of the same memory.
struct Bucket {
  BatchSize size;
  std::vector<size_t> offsets;  // bytes, per slot
  size_t workspace_offset = 0;
  size_t workspace_bytes = 0;
  size_t bytes() const { return workspace_offset + workspace_bytes; }
};

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
