#include "server/model/served_model.h"

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/model/batch_session.h"
#include "server/model/derived_spec.h"
#include "server/model/model_facts.h"
#include "server/model/pinned_pool.h"
#include "server/model/runner_seat.h"
#include "server/model/sequence_session.h"

namespace swizzle {
namespace {

class SeatedModel final : public ServedModel {
 public:
  SeatedModel(ModelSpec spec, PortMap ports, std::vector<CompiledModel> models, std::shared_ptr<PinnedPool> pool,
              SessionOptions options)
      : spec_(std::move(spec)),
        ports_(std::move(ports)),
        pool_(std::move(pool)),
        options_(std::move(options)),
        planned_whole_(models.front().plan() != nullptr),
        on_host_(planned_whole_ ? spec_.instance_kind != InstanceKind::kGpu
                                : models.front().regional()->on_device == nullptr),
        models_(std::move(models)) {
    const std::shared_ptr<const Plan>& plan = models_.front().plan();
    if (plan == nullptr) return;
    fixed_batch_ = plan->network().batch_size;
    if (plan->network().sequences) sequences_.emplace(spec_, ports_, *plan);
  }

  const ModelSpec& spec() const override { return spec_; }
  // Of the plans that there are now.
  std::shared_ptr<const ModelFacts> facts() const override {
    const MutexLock lock(mutex_);
    std::vector<std::shared_ptr<const Plan>> plans = models_.front().plans();
    if (facts_ == nullptr || plans != described_) {
      auto facts = std::make_shared<ModelFacts>(FactsOf(models_, options_.threads));
      if (sequences_) sequences_->Describe(facts->properties);
      facts_ = std::move(facts);
      described_ = std::move(plans);
    }
    return facts_;
  }
  StatusOr<std::vector<int64_t>> CheckRequest(std::span<const TensorView> inputs) const override {
    return sequences_ ? sequences_->Check(inputs) : std::vector<int64_t>();
  }
  uint64_t BatchClass(std::span<const TensorView> inputs) const override {
    return planned_whole_ ? 0 : ShapeClassOf(spec_, inputs);
  }
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs) const override {
    return pool_ == nullptr ? nullptr : pool_->Stage(inputs);
  }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    const MutexLock lock(mutex_);
    const CompiledModel& model = models_[seats_.size() % models_.size()];
    ModelRunOptions run{.threads = options_.threads, .limits = options_.limits};
    if (spec_.pin_threads) run.pinned_executor = static_cast<int>(seats_.size());
    // Only what computes on the host takes turns.
    const bool takes_turns = options_.turns != nullptr && on_host_;
    auto turn = takes_turns ? std::make_unique<ExecutorTurn>(options_.turns, share_) : nullptr;
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<RunnerSeat> seat,
                             RunnerSeat::Make(model, std::move(run), std::move(turn)));
    seats_.push_back(seat);
    if (sequences_) return NewSequenceSession(*sequences_, ports_, std::move(seat), clock);
    const Graph* const graph = planned_whole_ ? nullptr : &model.regional()->program->graph();
    const BatchedModel batched{spec_, ports_, pool_.get(), planned_whole_, fixed_batch_, graph};
    return NewBatchSession(batched, std::move(seat), clock);
  }

  // Seat by seat, so that there is one more arena at a time. Batches go on meanwhile, on either model.
  Status Replace(size_t device, const CompiledModel& model) override {
    std::vector<std::shared_ptr<RunnerSeat>> seats;
    {
      const MutexLock lock(mutex_);
      SWIZZLE_CHECK(device < models_.size() && planned_whole_ == (model.plan() != nullptr));
      for (size_t i = device; i < seats_.size(); i += models_.size()) {
        if (auto seat = seats_[i].lock()) seats.push_back(std::move(seat));
      }
    }
    for (const auto& seat : seats) SWIZZLE_RETURN_IF_ERROR(seat->Replace(model));
    const MutexLock lock(mutex_);
    models_[device] = model;
    facts_ = nullptr;
    described_.clear();
    return absl::OkStatus();
  }

 private:
  const ModelSpec spec_;
  const PortMap ports_;
  const std::shared_ptr<PinnedPool> pool_;  // any device reads it; null: none
  const SessionOptions options_;
  const bool planned_whole_, on_host_;
  int64_t fixed_batch_ = 0;
  const std::shared_ptr<ComputeTurns::Share> share_ = std::make_shared<ComputeTurns::Share>();
  std::optional<SequenceRules> sequences_;  // of what stands above

  mutable Mutex mutex_;
  std::vector<CompiledModel> models_ ABSL_GUARDED_BY(mutex_);                // one a device
  std::vector<std::weak_ptr<RunnerSeat>> seats_ ABSL_GUARDED_BY(mutex_);     // of sessions, which take these in turn
  mutable std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);  // null: nobody asked yet
  mutable std::vector<std::shared_ptr<const Plan>> described_ ABSL_GUARDED_BY(mutex_);  // that the facts are of
};

// Null where no device reads it, or inputs are of other sizes than are worth it.
StatusOr<std::shared_ptr<PinnedPool>> NewPool(const ModelSpec& spec, const CompiledModel& model) {
  const std::optional<size_t> bytes = PoolBytes(spec);
  if (!bytes || *bytes < PinnedPool::kMostRows * model.least_copied()) return nullptr;
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> memory, model.AllocateSource(*bytes));
  return memory == nullptr ? nullptr : std::make_shared<PinnedPool>(std::move(memory));
}

}  // namespace

StatusOr<std::shared_ptr<ServedModel>> NewServedModel(ModelSpec spec, std::vector<CompiledModel> models,
                                                      const SessionOptions& options) {
  SWIZZLE_CHECK(!models.empty());
  for (const CompiledModel& model : models) SWIZZLE_RETURN_IF_ERROR(model.refusal());
  SWIZZLE_ASSIGN_OR_RETURN(PortMap ports, FitSpec(spec, models.front()));
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<PinnedPool> pool, NewPool(spec, models.front()));
  return std::make_shared<SeatedModel>(std::move(spec), std::move(ports), std::move(models), std::move(pool), options);
}

}  // namespace swizzle
