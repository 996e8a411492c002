#include "model_loader/plan/plan.h"

#include <algorithm>
#include <array>

#include "model_loader/plan/plan_impl.h"

namespace swizzle {
namespace {

// The batch sizes that have an arena layout of their own: powers of two, and the largest.
std::vector<int64_t> BucketSizes(int64_t max_batch) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < max_batch; size *= 2) sizes.push_back(size);
  sizes.push_back(max_batch);
  return sizes;
}

class CompiledPlan final : public Plan {
 public:
  CompiledPlan(Backend& backend, Network network, PlanReport report, int threads, std::vector<Step> steps,
               std::vector<Bucket> buckets, std::vector<int> inputs, std::vector<int> outputs)
      : backend_(backend), network_(std::move(network)), report_(std::move(report)), threads_(threads),
        steps_(std::move(steps)), buckets_(std::move(buckets)), inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  const Network& network() const override { return network_; }
  const PlanReport& report() const override { return report_; }
  int64_t max_batch() const override { return buckets_.back().max_batch; }
  size_t arena_bytes() const override { return std::max<size_t>(buckets_.back().bytes(), kBufferAlignment); }

  StatusOr<ExecutionState> NewState() const override {
    ExecutionState state;
    SWIZZLE_ASSIGN_OR_RETURN(state.stream, backend_.NewStream(threads_));
    SWIZZLE_ASSIGN_OR_RETURN(state.arena, backend_.Allocate(arena_bytes()));
    return state;
  }

  std::span<float> Input(ExecutionState& state, int i, int64_t batch) const override {
    return {At(state, BucketFor(batch), inputs_[i]), Elements(network_.inputs[i], batch)};
  }

  std::span<const float> Output(ExecutionState& state, int i, int64_t batch) const override {
    return {At(state, BucketFor(batch), outputs_[i]), Elements(network_.outputs[i], batch)};
  }

  Status Run(ExecutionState& state, int64_t batch) const override {
    const Bucket& bucket = BucketFor(batch);
    for (const Step& step : steps_) RunStep(step, bucket, batch, state);
    return state.stream->Synchronize();
  }

 private:
  size_t Elements(const NetworkPort& port, int64_t batch) const {
    return static_cast<size_t>(network_.values[port.value].elements() * batch);
  }

  const Bucket& BucketFor(int64_t batch) const {
    SWIZZLE_CHECK(batch >= 1 && batch <= max_batch());
    return *std::lower_bound(buckets_.begin(), buckets_.end(), batch,
                             [](const Bucket& bucket, int64_t rows) { return bucket.max_batch < rows; });
  }

  static float* At(ExecutionState& state, const Bucket& bucket, int slot) {
    return reinterpret_cast<float*>(state.arena->data() + bucket.offsets[slot]);
  }

  static void RunStep(const Step& step, const Bucket& bucket, int64_t batch, ExecutionState& state) {
    Problem problem = step.problem;
    problem.input.batch = problem.output.batch = batch;
    std::array<const float*, 2> inputs = {};
    for (size_t i = 0; i < step.inputs.size(); ++i) inputs[i] = At(state, bucket, step.inputs[i]);
    KernelArgs args;
    args.problem = &problem;
    args.weight = step.weight.get();
    args.inputs = std::span(inputs.data(), step.inputs.size());
    args.output = At(state, bucket, step.output);
    args.workspace = {state.arena->data() + bucket.workspace_offset, bucket.workspace_bytes};
    step.kernel->run(args, *state.stream);
  }

  Backend& backend_;
  const Network network_;
  const PlanReport report_;
  const int threads_;
  const std::vector<Step> steps_;
  const std::vector<Bucket> buckets_;  // by rising max_batch
  const std::vector<int> inputs_;      // slots of the ports
  const std::vector<int> outputs_;
};

}  // namespace

PlanBuilder::PlanBuilder(Backend& backend, Network network, int64_t max_batch, int threads)
    : backend_(backend), network_(std::move(network)), max_batch_(max_batch), threads_(threads) {
  for (const NetworkPort& port : network_.inputs) NewSlot(port.value, Layout::kNchw);
}

int PlanBuilder::NewSlot(int value, Layout layout) {
  const int step = static_cast<int>(steps_.size());
  const int slot = static_cast<int>(slots_.size());
  slots_.push_back({network_.values[value], layout, step, step});
  slots_of_value_[value][layout] = slot;
  return slot;
}

int PlanBuilder::ConvertedSlot(int value, int from_slot, Layout layout) {
  Step step;
  step.kernel = FindConversion(backend_, network_.values[value].WithBatch(1), slots_[from_slot].layout, layout, threads_);
  SWIZZLE_CHECK(step.kernel != nullptr);  // else the choice of layouts had cost infinity
  step.problem = ConversionProblem(network_.values[value].WithBatch(1), threads_);
  step.inputs = {from_slot};
  slots_[from_slot].last_step = static_cast<int>(steps_.size());
  step.output = NewSlot(value, layout);
  steps_.push_back(std::move(step));
  ++conversions_;
  return steps_.back().output;
}

int PlanBuilder::SlotIn(int value, Layout layout) {
  const auto& slots = slots_of_value_.at(value);
  if (auto found = slots.find(layout); found != slots.end()) return found->second;
  const int original = std::min_element(slots.begin(), slots.end(), [](const auto& a, const auto& b) {
                         return a.second < b.second;
                       })->second;
  return ConvertedSlot(value, original, layout);
}

StatusOr<int64_t> PlanBuilder::AddLayer(const Layer& layer, const Candidate& candidate) {
  std::vector<int> inputs;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const bool residual = layer.epilogue.residual && i == 1;
    inputs.push_back(SlotIn(layer.inputs[i], residual ? candidate.output : candidate.input));
  }
  if (candidate.kernel == nullptr) {
    slots_of_value_[layer.output][candidate.output] = inputs[0];
    return 0;
  }
  Step step;
  step.kernel = candidate.kernel;
  step.problem = LayerProblem(network_, layer, 1, threads_);
  int64_t device_bytes = 0;
  if (step.kernel->prepare != nullptr) {
    Weight& weight = network_.weights[layer.weight];
    SWIZZLE_ASSIGN_OR_RETURN(step.weight, step.kernel->prepare(weight, step.problem));
    device_bytes = static_cast<int64_t>(step.weight->bytes());
    weight = Weight{};
  }
  for (int slot : inputs) slots_[slot].last_step = static_cast<int>(steps_.size());
  step.inputs = std::move(inputs);
  step.output = NewSlot(layer.output, candidate.output);
  steps_.push_back(std::move(step));
  return device_bytes;
}

Bucket PlanBuilder::LayOut(int64_t max_batch) const {
  std::vector<Lifetime> lifetimes;
  for (const Slot& slot : slots_) {
    const int64_t floats = LayoutElements(slot.value.WithBatch(max_batch), slot.layout);
    lifetimes.push_back({static_cast<size_t>(floats) * sizeof(float), slot.first_step, slot.last_step});
  }
  ArenaLayout arena = PlaceBuffers(lifetimes);
  Bucket bucket{max_batch, std::move(arena.offsets), arena.bytes, 0};
  for (const Step& step : steps_) {
    if (step.kernel->workspace_bytes == nullptr) continue;
    Problem problem = step.problem;
    problem.input.batch = problem.output.batch = max_batch;
    bucket.workspace_bytes = std::max(bucket.workspace_bytes, step.kernel->workspace_bytes(problem));
  }
  return bucket;
}

StatusOr<std::shared_ptr<const Plan>> PlanBuilder::Finish(PlanReport report) {
  std::vector<int> inputs, outputs;
  for (const NetworkPort& port : network_.inputs) inputs.push_back(slots_of_value_.at(port.value).at(Layout::kNchw));
  for (const NetworkPort& port : network_.outputs) {
    outputs.push_back(SlotIn(port.value, Layout::kNchw));
    slots_[outputs.back()].last_step = std::numeric_limits<int>::max();
  }
  std::vector<Bucket> buckets;
  for (int64_t size : BucketSizes(max_batch_)) buckets.push_back(LayOut(size));
  network_.weights.clear();
  report.conversions = conversions_;
  return std::make_shared<CompiledPlan>(backend_, std::move(network_), std::move(report), threads_, std::move(steps_),
                                        std::move(buckets), std::move(inputs), std::move(outputs));
}

}  // namespace swizzle
