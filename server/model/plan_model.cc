#include "server/model/plan_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/integers.h"
#include "model_loader/plan/planner.h"
#include "server/model/batch_rows.h"
#include "server/model/layer_tally.h"
#include "server/model/pinned_pool.h"
#include "server/model/plan_seat.h"
#include "server/model/sequence_session.h"
#include "server/model/tensor_ports.h"

namespace swizzle {
namespace {

// The ports are as a specification with this max_batch_size has them.
std::vector<ModelPort> PortsOf(const Network& network, const std::vector<NetworkPort>& ports, int64_t max_batch_size) {
  std::vector<ModelPort> made;
  for (const NetworkPort& port : ports) {
    Shape dims = port.dims;
    if (network.batch_size == 0 && max_batch_size == 0) dims.insert(dims.begin(), -1);
    made.push_back({port.name, port.dtype, std::move(dims)});
  }
  return made;
}

Status CheckBatchSize(const ModelSpec& spec, const Plan& plan) {
  const int64_t fixed = plan.network().batch_size;
  if (fixed != 0 && spec.max_batch_size != 0) {
    return InvalidArgument("model '", spec.name, "' has a batch dimension fixed at ", fixed,
                           ": max_batch_size must be 0, not ", spec.max_batch_size);
  }
  if (spec.max_batch_size > plan.max_batch()) {
    return InvalidArgument("model '", spec.name, "' is planned for at most ", plan.max_batch(),
                           " rows: max_batch_size ", spec.max_batch_size, " is too large");
  }
  return absl::OkStatus();
}

// Fits `spec` to the plan: resolves its -1s and finds its ports.
StatusOr<PortMap> Resolve(ModelSpec& spec, const Plan& plan) {
  SWIZZLE_RETURN_IF_ERROR(CheckBatchSize(spec, plan));
  const Network& network = plan.network();
  return ResolvePorts(spec, PortsOf(network, network.inputs, spec.max_batch_size),
                      PortsOf(network, network.outputs, spec.max_batch_size));
}

class PlanSession final : public Session {
 public:
  // `pool`: where requests' inputs may be; may be null.
  PlanSession(const ModelSpec& spec, const PortMap& ports, std::shared_ptr<PlanSeat> seat, const PinnedPool* pool,
              Clock& clock)
      : spec_(spec), ports_(ports), seat_(std::move(seat)), pool_(pool), clock_(clock) {}

  // A large batch in parts, or runs, of nearly equal size (PlanReport::micro_batch).
  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const MutexLock lock(seat_->mutex());
    plan_ = &seat_->plan();
    runner_ = &seat_->runner();
    SWIZZLE_ASSIGN_OR_RETURN(const BatchRows rows, RowsOf(batch));
    const int64_t total = rows.total();
    const int64_t micro_batch = plan_->report().micro_batch;
    const int64_t runs = CeilDiv(total, micro_batch);
    const bool together = runs > 1 && plan_->has_tail(), in_pool = InPool(batch);
    StartOutputs(batch, rows);
    const BatchTurn turn = seat_->BeginBatch(total);
    times = {};
    for (int64_t run = 0; run < runs; ++run) {
      const RowRange range = {total * run / runs, total * (run + 1) / runs};
      const Instant start = clock_.Now();
      Gather(rows, range, in_pool);
      const Instant gathered = clock_.Now();
      SWIZZLE_RETURN_IF_ERROR(together ? runner_->RunPart({range.begin, range.count(), total})
                                       : runner_->Run(range.count()));
      const Instant computed = clock_.Now();
      if (!together) {
        Scatter(rows, range);
      } else if (range.end == total) {
        Scatter(rows, {0, total});
      }
      times.input += gathered - start;
      times.compute += computed - gathered;
      times.output += clock_.Now() - computed;
    }
    return absl::OkStatus();
  }
  bool RunsAtOnce(uint64_t) const override { return seat_->RunsAtOnce(); }

 private:
  // Rows of the plan that an item takes: its batch dimension where that is free, else all there are.
  StatusOr<int64_t> PlanRows(const BatchItem& item) const {
    if (plan_->network().batch_size != 0) return plan_->network().batch_size;
    if (spec_.max_batch_size > 0) return item.rows;
    const int64_t rows = item.inputs[0].shape[0];
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      if (item.inputs[i].shape[0] != rows) {
        return InvalidArgument("input '", spec_.inputs[i].name, "' of model '", spec_.name, "' has shape ",
                               ShapeText(item.inputs[i].shape), ", whose batch dimension is not that of input '",
                               spec_.inputs[0].name, "', ", rows);
      }
    }
    if (rows < 1 || rows > plan_->max_batch()) {
      return InvalidArgument("input '", spec_.inputs[0].name, "' of model '", spec_.name, "' has shape ",
                             ShapeText(item.inputs[0].shape), "; its first dimension must be 1 to ",
                             plan_->max_batch());
    }
    return rows;
  }

  bool InPool(std::span<const BatchItem> batch) const {
    return pool_ != nullptr && std::ranges::all_of(batch, [&](const BatchItem& item) {
             return std::ranges::all_of(item.inputs, [&](const TensorView& view) { return pool_->Holds(view.bytes); });
           });
  }

  StatusOr<BatchRows> RowsOf(std::span<BatchItem> batch) const {
    std::vector<int64_t> rows;
    for (const BatchItem& item : batch) {
      SWIZZLE_ASSIGN_OR_RETURN(rows.emplace_back(), PlanRows(item));
    }
    return BatchRows(batch, std::move(rows));
  }

  // Copies these rows of the requests' inputs, one after the other, to where the plan wants them; from the pool the
  // device does, and on the CPU, what is long, the plan's threads, which the first step would otherwise have to wake.
  void Gather(const BatchRows& rows, RowRange range, bool in_pool) {
    for (size_t i = 0; i < ports_.inputs.size(); ++i) {
      const int input = ports_.inputs[i];
      size_t offset = 0;
      for (const auto& from : rows.PiecesOf(i, range)) {
        if (in_pool) {
          runner_->CopyInput(input, range.count(), offset, from);
        } else if (!from.empty()) {
          runner_->WriteInput(input, range.count(), offset, from);
        }
        offset += from.size();
      }
      SWIZZLE_CHECK(offset == runner_->InputMemory(input, range.count()).size());
    }
  }

  // Empty outputs, and their shapes.
  void StartOutputs(std::span<const BatchItem> batch, const BatchRows& rows) const {
    const bool free_batch = plan_->network().batch_size == 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i].outputs->assign(ports_.outputs.size(), std::string());
      batch[i].output_shapes->clear();
      for (const int output : ports_.outputs) {
        Shape& shape = batch[i].output_shapes->emplace_back(plan_->network().outputs[static_cast<size_t>(output)].dims);
        if (free_batch) shape.insert(shape.begin(), rows.of_items()[i]);
      }
    }
  }

  // Appends these rows to the requests' outputs.
  void Scatter(const BatchRows& rows, RowRange range) {
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      rows.Append(i, range, std::as_bytes(runner_->Output(ports_.outputs[i], range.count())));
    }
  }

  const ModelSpec& spec_;  // the model's, which outlives this
  const PortMap& ports_;
  const std::shared_ptr<PlanSeat> seat_;
  const Plan* plan_ = nullptr;  // of the batch that runs, as the runner
  Runner* runner_ = nullptr;
  const PinnedPool* const pool_;  // the model's, or null
  Clock& clock_;
};

// Null where the plan takes inputs from its own memory alone.
StatusOr<std::shared_ptr<PinnedPool>> NewPool(const ModelSpec& spec, const Plan& plan) {
  const std::optional<size_t> bytes = PoolBytes(spec);
  if (plan.network().sequences || !bytes) return nullptr;
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> memory, plan.AllocateSource(*bytes));
  return memory == nullptr ? nullptr : std::make_shared<PinnedPool>(std::move(memory));
}

class SeatedPlanModel final : public PlanModel {
 public:
  SeatedPlanModel(ModelSpec spec, PortMap ports, std::vector<std::shared_ptr<const Plan>> plans,
                  std::shared_ptr<PinnedPool> pool, std::shared_ptr<ComputeTurns> turns)
      : spec_(std::move(spec)),
        ports_(std::move(ports)),
        pool_(std::move(pool)),
        turns_(std::move(turns)),
        plans_(std::move(plans)) {
    if (plans_[0]->network().sequences) sequences_.emplace(spec_, ports_, *plans_[0]);
    facts_ = FactsOfPlans();
  }

  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override {
    const MutexLock lock(mutex_);
    return facts_;
  }
  StatusOr<int64_t> CheckRequest(std::span<const TensorView> inputs) const override {
    return sequences_ ? sequences_->Check(inputs) : 0;
  }
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs) const override {
    return pool_ == nullptr ? nullptr : pool_->Stage(inputs);
  }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    const MutexLock lock(mutex_);
    const std::shared_ptr<const Plan>& plan = plans_[seats_.size() % plans_.size()];
    RunnerOptions options;
    std::unique_ptr<ExecutorTurn> turn;
    // Only what computes on the host takes turns.
    if (turns_ != nullptr && spec_.instance_kind != InstanceKind::kGpu) {
      turn = std::make_unique<ExecutorTurn>(turns_, share_);
      options.gate = turn.get();
    }
    if (spec_.pin_threads) options.pinned_executor = static_cast<int>(seats_.size());
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, plan->NewRunner(options));
    auto seat = std::make_shared<PlanSeat>(plan, std::move(runner), options, std::move(turn));
    seats_.push_back(seat);
    if (sequences_) return NewSequenceSession(*sequences_, ports_, std::move(seat), clock);
    return std::make_unique<PlanSession>(spec_, ports_, std::move(seat), pool_.get(), clock);
  }

  // Seat by seat, so that there is one more arena at a time. Batches go on meanwhile, on either plan.
  Status ReplacePlan(size_t device, std::shared_ptr<const Plan> plan) override {
    std::vector<std::shared_ptr<PlanSeat>> seats;
    {
      const MutexLock lock(mutex_);
      SWIZZLE_CHECK(device < plans_.size());
      for (size_t i = device; i < seats_.size(); i += plans_.size()) {
        if (auto seat = seats_[i].lock()) seats.push_back(std::move(seat));
      }
    }
    for (const auto& seat : seats) SWIZZLE_RETURN_IF_ERROR(seat->Replace(plan));
    const MutexLock lock(mutex_);
    plans_[device] = std::move(plan);
    facts_ = FactsOfPlans();
    return absl::OkStatus();
  }

 private:
  // Of the first plan.
  std::shared_ptr<const ModelFacts> FactsOfPlans() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto facts = std::make_shared<ModelFacts>(FactsOf(plans_[0]->report()));
    if (plans_.size() > 1) facts->device = facts->device.substr(0, facts->device.find(':'));
    facts->devices.clear();
    for (const auto& plan : plans_) facts->devices.push_back(plan->report().backend);
    if (sequences_) sequences_->Describe(facts->properties);
    return facts;
  }

  const ModelSpec spec_;
  const PortMap ports_;
  const std::shared_ptr<PinnedPool> pool_;     // any device reads it; null: none
  const std::shared_ptr<ComputeTurns> turns_;  // null: takes none
  const std::shared_ptr<ComputeTurns::Share> share_ = std::make_shared<ComputeTurns::Share>();
  std::optional<SequenceRules> sequences_;  // of what stands above

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mutex_);  // one a device
  std::vector<std::weak_ptr<PlanSeat>> seats_ ABSL_GUARDED_BY(mutex_);      // of sessions, which take the plans in turn
  std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);
};

TensorSpec SpecOf(const NetworkPort& port) { return {port.name, port.dtype, port.dims}; }

}  // namespace

ModelSpec DeriveSpec(const Network& network) {
  ModelSpec spec;
  spec.backend = "swizzle";
  spec.max_batch_size = network.batch_size == 0 ? kDerivedMaxBatchSize : 0;
  if (network.sequences) spec.max_batch_tokens = PlanOptions().max_tokens;
  for (const NetworkPort& port : network.inputs) spec.inputs.push_back(SpecOf(port));
  for (const NetworkPort& port : network.outputs) spec.outputs.push_back(SpecOf(port));
  return spec;
}

ModelFacts FactsOf(const PlanReport& report) {
  ModelFacts facts;
  LayerTally tally;
  tally.Add(report);
  tally.Describe(facts);
  facts.device = report.backend;
  facts.devices = {report.backend};
  facts.device_bytes = report.device_bytes;
  facts.properties.insert({
      {"swizzle_dense_bytes", std::to_string(report.dense_bytes)},
      {"swizzle_stored_bytes", std::to_string(report.stored_bytes)},
      {"swizzle_device_bytes", std::to_string(report.device_bytes)},
      {"swizzle_device", report.device},
      {"swizzle_threads", std::to_string(report.threads)},
      {"swizzle_micro_batch", std::to_string(report.micro_batch)},
  });
  return facts;
}

StatusOr<std::shared_ptr<PlanModel>> NewPlanModel(ModelSpec spec, std::vector<std::shared_ptr<const Plan>> plans,
                                                  std::shared_ptr<ComputeTurns> turns) {
  SWIZZLE_CHECK(!plans.empty());
  SWIZZLE_ASSIGN_OR_RETURN(PortMap ports, Resolve(spec, *plans[0]));
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<PinnedPool> pool, NewPool(spec, *plans[0]));
  return std::make_shared<SeatedPlanModel>(std::move(spec), std::move(ports), std::move(plans), std::move(pool),
                                           std::move(turns));
}

StatusOr<std::shared_ptr<PlanModel>> NewPlanModel(ModelSpec spec, std::shared_ptr<const Plan> plan) {
  return NewPlanModel(std::move(spec), std::vector{std::move(plan)});
}

}  // namespace swizzle
