#include "model_loader/plan/run/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model_loader/plan/choose/micro_batch.h"
#include "model_loader/plan/choose/serial_steps.h"
#include "model_loader/plan/choose/trial_batch.h"
#include "model_loader/plan/plan_impl.h"
#include "model_loader/plan/run/arena.h"
#include "model_loader/plan/run/staging.h"
#include "model_loader/plan/run/tail.h"

namespace swizzle {
namespace {

// The batch sizes that have an arena layout of their own: powers of two, and the largest. Where there are sequences
// tokens are what counts: a batch of so many has that many rows at most.
std::vector<BatchSize> BucketSizes(BatchSize max, bool sequences) {
  std::vector<BatchSize> sizes;
  const int64_t most = sequences ? max.tokens : max.rows;
  for (int64_t size = 1; size < most; size *= 2) sizes.emplace_back(std::min(size, max.rows), size);
  sizes.push_back(max);
  return sizes;
}

// What choosing serial steps and the micro-batch may take beside the tuning budget: a tenth and a fifth of it.
constexpr int kSerialStepsPart = 10;
constexpr int kMicroBatchPart = 5;

// What a plan is made of once it is built.
struct PlanParts {
  std::vector<Step> steps;
  std::vector<Bucket> buckets;  // by rising size
  std::vector<int> inputs;      // slots of the ports; -1: none
  std::vector<int> outputs;
  std::vector<int64_t> id_limits;
  int64_t position_limit = 0;
  std::optional<Tail> tail;
};

class CompiledPlan final : public Plan {
 public:
  CompiledPlan(Backend& backend, Network network, PlanReport report, int threads, PlanParts parts)
      : backend_(backend),
        network_(std::move(network)),
        report_(std::move(report)),
        threads_(threads),
        parts_(std::move(parts)) {
    if (!backend_.shares_host_memory()) staging_ = StagingLayout(network_, MaxSize());
  }

  // Once, before anything else is done with the plan.
  void SetMicroBatch(int64_t micro_batch) { report_.micro_batch = micro_batch; }

  // Likewise: which steps run on one thread in a batch of one row, or one sequence of middling length, or in the fixed
  // batch. Returns the plan's hash with these.
  StatusOr<uint64_t> SetSerialSteps(absl::Duration budget, TuningCache* cache, uint64_t plan_hash) {
    if (threads_ == 1) return plan_hash;
    const int64_t rows = network_.batch_size > 0 ? max_batch() : 1;
    const int64_t tokens = rows * std::max<int64_t>(TrialLength(*this), 1);
    std::optional<TrialBatch> trial;  // made where something is measured
    const auto time_steps = [&](const std::vector<bool>& serial) -> StatusOr<std::vector<absl::Duration>> {
      if (!trial) {
        SWIZZLE_ASSIGN_OR_RETURN(TrialBatch made, TrialBatch::Make(*this));
        trial.emplace(std::move(made));
      }
      return TimeSteps(*trial, rows, serial);
    };
    SWIZZLE_ASSIGN_OR_RETURN(const auto serial, ChooseSerialSteps(static_cast<int>(parts_.steps.size()), budget, cache,
                                                                  ExtendPlanHash(plan_hash, tokens), time_steps));
    for (size_t i = 0; i < serial.size(); ++i) {
      if (!serial[i]) continue;
      Step& step = parts_.steps[i];
      step.serial = true;
      if (step.layer >= 0) report_.layers[step.layer].serial = true;
      report_.small_batch = tokens;
      plan_hash = ExtendPlanHash(plan_hash, static_cast<int64_t>(i));
    }
    return plan_hash;
  }

  const Network& network() const override { return network_; }
  const PlanReport& report() const override { return report_; }
  int64_t max_batch() const override { return parts_.buckets.back().size.rows; }
  int64_t max_tokens() const override { return network_.sequences ? parts_.buckets.back().size.tokens : 0; }
  int64_t IdLimit(int i) const override { return parts_.id_limits[i]; }
  int64_t PositionLimit() const override { return parts_.position_limit; }
  size_t arena_bytes() const override { return std::max<size_t>(parts_.buckets.back().bytes(), kBufferAlignment); }

  StatusOr<ExecutionState> NewState() const override {
    ExecutionState state;
    SWIZZLE_ASSIGN_OR_RETURN(state.stream, backend_.NewStream(threads_));
    SWIZZLE_ASSIGN_OR_RETURN(state.arena, backend_.Allocate(arena_bytes()));
    if (backend_.shares_host_memory()) return state;
    SWIZZLE_ASSIGN_OR_RETURN(state.staging, backend_.AllocateHost(staging_.bytes()));
    if (network_.sequences) {
      SWIZZLE_ASSIGN_OR_RETURN(state.sequences, StagedSequences::Make(backend_, MaxSize()));
    }
    state.recordings = std::make_unique<Recordings>();
    return state;
  }

  std::span<float> Input(ExecutionState& state, int i, BatchSize size) const override {
    const std::span<float> input = DeviceInput(state, i, size);
    return state.staging == nullptr ? input : Staged(state, staging_.input(i), input.size());
  }

  std::span<const float> Output(ExecutionState& state, int i, BatchSize size) const override {
    const std::span<float> output = DeviceOutput(state, i, size);
    return state.staging == nullptr ? output : Staged(state, staging_.output(i), output.size());
  }

  std::span<int32_t> Ids(ExecutionState& state, int i, BatchSize size) const override {
    const std::span<float> input = Input(state, i, size);
    return {reinterpret_cast<int32_t*>(input.data()), input.size()};
  }

  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const override {
    if (backend_.shares_host_memory()) return nullptr;
    return backend_.AllocateHost(bytes);
  }

  void CopyInput(ExecutionState& state, int i, BatchSize size, size_t offset,
                 std::span<const std::byte> bytes) const override {
    SWIZZLE_CHECK(state.staging != nullptr && state.sequences == nullptr);
    const auto to = std::as_writable_bytes(DeviceInput(state, i, RoundedSize(size, MaxSize(), false)));
    SWIZZLE_CHECK(offset <= to.size() && bytes.size() <= to.size() - offset);
    state.stream->Run([&] { state.stream->Copy(to.data() + offset, bytes.data(), bytes.size()); });
    state.inputs_copied = true;
  }

  Status Run(ExecutionState& state, BatchSize size, const Sequences* sequences) const override {
    SWIZZLE_CHECK((sequences != nullptr) == network_.sequences.has_value());
    if (state.staging != nullptr) return RunStaged(state, size, sequences);
    state.stream->Run([&] { QueueSteps(state, size, sequences); });
    return state.stream->Synchronize();
  }

  bool has_tail() const override { return parts_.tail.has_value(); }

  // Threads go to sleep after the last part.
  Status RunPart(ExecutionState& state, BatchPart part) const override {
    if (!parts_.tail) return Run(state, part.rows, nullptr);
    SWIZZLE_CHECK(part.first >= 0 && part.first + part.rows <= part.of && part.of <= max_batch());
    const Tail& tail = *parts_.tail;
    if (state.held == nullptr) {
      SWIZZLE_ASSIGN_OR_RETURN(state.held, backend_.Allocate(tail.row_bytes * static_cast<size_t>(max_batch())));
    }
    std::byte* const held = state.held->data();
    const std::span<const Step> steps(parts_.steps);
    RunSteps(steps.first(tail.first_step), BucketFor(part.rows), part.rows, nullptr, state);
    std::memcpy(held + tail.row_bytes * part.first, At(state, BucketFor(part.rows), tail.slot),
                tail.row_bytes * part.rows);
    if (part.first + part.rows < part.of) return absl::OkStatus();
    std::memcpy(At(state, BucketFor(part.of), tail.slot), held, tail.row_bytes * part.of);
    RunSteps(steps.subspan(tail.first_step), BucketFor(part.of), part.of, nullptr, state);
    return state.stream->Synchronize();
  }

 private:
  size_t Elements(const NetworkPort& port, BatchSize size) const {
    const NetworkValue& value = network_.values[port.value];
    return static_cast<size_t>(value.WithBatch(size).positions() * value.channels);
  }

  const Bucket& BucketFor(BatchSize size) const {
    SWIZZLE_CHECK(size.rows >= 1 && size.rows <= max_batch());
    const bool sequences = network_.sequences.has_value();
    SWIZZLE_CHECK(!sequences || (size.rows <= size.tokens && size.tokens <= max_tokens()));
    return *std::lower_bound(parts_.buckets.begin(), parts_.buckets.end(), size,
                             [=](const Bucket& bucket, BatchSize wanted) {
                               return sequences ? bucket.size.tokens < wanted.tokens : bucket.size.rows < wanted.rows;
                             });
  }

  BatchSize MaxSize() const { return parts_.buckets.back().size; }

  std::span<float> DeviceInput(ExecutionState& state, int i, BatchSize size) const {
    return {At(state, BucketFor(size), parts_.inputs[i]), Elements(network_.inputs[i], size)};
  }
  std::span<float> DeviceOutput(ExecutionState& state, int i, BatchSize size) const {
    return {At(state, BucketFor(size), parts_.outputs[i]), Elements(network_.outputs[i], size)};
  }
  static std::span<float> Staged(ExecutionState& state, size_t offset, size_t elements) {
    return {reinterpret_cast<float*>(state.staging->data() + offset), elements};
  }

  // Replays what was recorded for the size, rounded up. The first batch of a size runs unrecorded, so that libraries
  // set themselves up, and is then recorded.
  Status RunStaged(ExecutionState& state, BatchSize size, const Sequences* sequences) const {
    const BatchSize rounded = RoundedSize(size, MaxSize(), sequences != nullptr);
    if (sequences != nullptr) state.sequences->Set(*sequences, rounded);
    const RecordingKey key{rounded.rows, rounded.tokens, sequences != nullptr && !sequences->key_bias.empty(),
                           !std::exchange(state.inputs_copied, false)};
    if (Recording* const recording = state.recordings->Find(key)) {
      SWIZZLE_RETURN_IF_ERROR(recording->Replay());
      return state.stream->Synchronize();
    }
    const auto work = [&] { QueueStaged(state, rounded, key.copies_inputs); };
    state.stream->Run(work);
    SWIZZLE_RETURN_IF_ERROR(state.stream->Synchronize());
    if (state.recordings->Contains(key)) return absl::OkStatus();
    // The batch has been computed, so a recording that cannot be made fails nothing: its size goes on unrecorded.
    StatusOr<std::unique_ptr<Recording>> recording = state.stream->Record(work);
    state.recordings->Add(key, recording.ok() ? *std::move(recording) : nullptr);
    return absl::OkStatus();
  }

  // Copies in, the steps, and copies out.
  void QueueStaged(ExecutionState& state, BatchSize size, bool copies_inputs) const {
    Stream& stream = *state.stream;
    for (size_t i = 0; copies_inputs && i < network_.inputs.size(); ++i) {
      if (parts_.inputs[i] == -1) continue;
      const std::span<float> to = DeviceInput(state, static_cast<int>(i), size);
      stream.Copy(to.data(), Staged(state, staging_.input(static_cast<int>(i)), to.size()).data(), to.size_bytes());
    }
    if (state.sequences != nullptr) state.sequences->QueueCopy(stream);
    QueueSteps(state, size, state.sequences == nullptr ? nullptr : &state.sequences->on_device());
    for (size_t i = 0; i < network_.outputs.size(); ++i) {
      const std::span<float> from = DeviceOutput(state, static_cast<int>(i), size);
      stream.Copy(Staged(state, staging_.output(static_cast<int>(i)), from.size()).data(), from.data(),
                  from.size_bytes());
    }
  }

  void QueueSteps(ExecutionState& state, BatchSize size, const Sequences* sequences) const {
    RunSteps(parts_.steps, BucketFor(size), size, sequences, state);
  }

  static float* At(ExecutionState& state, const Bucket& bucket, int slot) {
    return reinterpret_cast<float*>(state.arena->data() + bucket.offsets[slot]);
  }

  void RunSteps(std::span<const Step> steps, const Bucket& bucket, BatchSize size, const Sequences* sequences,
                ExecutionState& state) const {
    const bool small = (sequences == nullptr ? size.rows : size.tokens) <= report_.small_batch;
    for (const Step& step : steps) {
      if (small) state.stream->RunSerially(step.serial);
      RunStep(step, bucket, size, sequences, state);
    }
    if (small) state.stream->RunSerially(false);
  }

  StatusOr<std::vector<absl::Duration>> TimeSteps(TrialBatch& trial, int64_t rows,
                                                  const std::vector<bool>& serial) const {
    trial.Fill(rows);
    const BatchSize size = trial.SizeOf(rows);
    ExecutionState& state = trial.state();
    std::vector<absl::Duration> times;
    for (size_t i = 0; i < serial.size(); ++i) {
      state.stream->RunSerially(serial[i]);
      const auto run = [&] { RunStep(parts_.steps[i], BucketFor(size), size, trial.sequences(), state); };
      SWIZZLE_ASSIGN_OR_RETURN(times.emplace_back(), state.stream->Time(run, {}));
    }
    SWIZZLE_RETURN_IF_ERROR(state.stream->Synchronize());
    return times;
  }

  static void RunStep(const Step& step, const Bucket& bucket, BatchSize size, const Sequences* sequences,
                      ExecutionState& state) {
    const Problem problem = step.ProblemAt(size);
    std::array<const float*, kMaxKernelInputs> inputs = {};
    for (size_t i = 0; i < step.inputs.size(); ++i) inputs[i] = At(state, bucket, step.inputs[i]);
    KernelArgs args;
    args.problem = &problem;
    args.weight = step.weight.get();
    args.inputs = std::span(inputs.data(), step.inputs.size());
    args.output = At(state, bucket, step.output);
    args.workspace = {state.arena->data() + bucket.workspace_offset, bucket.workspace_bytes};
    args.sequences = sequences;
    step.kernel->run(args, *state.stream);
  }

  Backend& backend_;
  const Network network_;
  PlanReport report_;
  const int threads_;
  PlanParts parts_;
  StagingLayout staging_;
};

}  // namespace

ExecutionState::ExecutionState() = default;
ExecutionState::~ExecutionState() = default;
ExecutionState::ExecutionState(ExecutionState&&) noexcept = default;
ExecutionState& ExecutionState::operator=(ExecutionState&&) noexcept = default;

PlanBuilder::PlanBuilder(Backend& backend, Network network, BatchSize max_size, RunSettings settings)
    : backend_(backend), network_(std::move(network)), max_size_(max_size), settings_(settings) {
  for (const NetworkPort& port : network_.inputs) {
    if (port.value != -1) NewSlot(port.value, Layout::kNchw);
    id_limits_.push_back(port.value == -1 ? 0 : network_.LookupLimit(port.value));
  }
  position_limit_ = network_.LookupLimit(-1);
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
  step.kernel =
      FindConversion(backend_, network_.values[value].WithBatch(1), slots_[from_slot].layout, layout, settings_);
  SWIZZLE_CHECK(step.kernel != nullptr);  // else the choice of layouts had cost infinity
  step.problem = ConversionProblem(network_.values[value].WithBatch(1), settings_);
  step.tokens_in = step.tokens_out = network_.values[value].per_token;
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
  const int layer_index = layers_++;
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
  step.layer = layer_index;
  step.problem = LayerProblem(network_, layer, 1, settings_.threads, TypeOf(settings_.precision));
  step.problem.blocking = candidate.blocking;
  step.tokens_out = network_.values[layer.output].per_token;
  step.tokens_in = layer.inputs.empty() ? step.tokens_out : network_.values[layer.inputs[0]].per_token;
  int64_t device_bytes = 0;
  hash_ =
      ExtendPlanHash(hash_, *step.kernel, step.problem, layer.weight < 0 ? nullptr : &network_.weights[layer.weight]);
  if (step.kernel->prepare != nullptr) {
    Weight& weight = network_.weights[layer.weight];
    SWIZZLE_ASSIGN_OR_RETURN(step.weight, backend_.Prepare(*step.kernel, weight, step.problem));
    device_bytes = static_cast<int64_t>(step.weight->bytes());
    weight = Weight{};
  }
  for (int slot : inputs) slots_[slot].last_step = static_cast<int>(steps_.size());
  step.inputs = std::move(inputs);
  step.output = NewSlot(layer.output, candidate.output);
  steps_.push_back(std::move(step));
  return device_bytes;
}

Bucket PlanBuilder::LayOut(BatchSize size) const {
  std::vector<Lifetime> lifetimes;
  for (const Slot& slot : slots_) {
    const auto elements = static_cast<size_t>(LayoutElements(slot.value.WithBatch(size), slot.layout));
    const size_t bytes = elements * ElementBytes(ElementType(slot.layout, TypeOf(settings_.precision)));
    lifetimes.push_back({bytes, slot.first_step, slot.last_step});
  }
  ArenaLayout arena = PlaceBuffers(lifetimes);
  Bucket bucket{size, std::move(arena.offsets), arena.bytes, 0};
  for (const Step& step : steps_) {
    if (step.kernel->workspace_bytes == nullptr) continue;
    bucket.workspace_bytes = std::max(bucket.workspace_bytes, step.kernel->workspace_bytes(step.ProblemAt(size)));
  }
  return bucket;
}

StatusOr<std::shared_ptr<const Plan>> PlanBuilder::Finish(PlanReport report, const PlanOptions& options) {
  PlanParts parts;
  for (const NetworkPort& port : network_.inputs) {
    parts.inputs.push_back(port.value == -1 ? -1 : slots_of_value_.at(port.value).at(Layout::kNchw));
  }
  for (const NetworkPort& port : network_.outputs) {
    parts.outputs.push_back(SlotIn(port.value, Layout::kNchw));
    slots_[parts.outputs.back()].last_step = std::numeric_limits<int>::max();
  }
  for (BatchSize size : BucketSizes(max_size_, network_.sequences.has_value())) parts.buckets.push_back(LayOut(size));
  if (backend_.shares_host_memory() && !network_.sequences && max_size_.rows > 1 && network_.batch_size == 0) {
    parts.tail = FindTail(steps_, slots_);
  }
  parts.steps = std::move(steps_);
  parts.id_limits = std::move(id_limits_);
  parts.position_limit = position_limit_;
  network_.weights.clear();
  report.conversions = conversions_;
  report.micro_batch = network_.sequences ? max_size_.tokens : max_size_.rows;
  auto plan = std::make_shared<CompiledPlan>(backend_, std::move(network_), std::move(report), settings_.threads,
                                             std::move(parts));
  if (backend_.shares_host_memory()) {
    SWIZZLE_ASSIGN_OR_RETURN(
        hash_, plan->SetSerialSteps(options.tuning_budget / kSerialStepsPart, options.tuning_cache, hash_));
  }
  if (options.micro_batch > 0) {
    plan->SetMicroBatch(options.micro_batch);
  } else if (backend_.shares_host_memory()) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t micro_batch, ChooseMicroBatch(*plan, options.tuning_budget / kMicroBatchPart,
                                                                         options.tuning_cache, hash_));
    plan->SetMicroBatch(micro_batch);
  }
  return plan;
}

}  // namespace swizzle
