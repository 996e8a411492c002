#include "server/telemetry/model_metrics.h"

#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/mutex.h"
#include "server/telemetry/statistics.h"

namespace swizzle {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

// The edges of the model's own histogram of this family, else the table's.
template <FamilyName kName>
std::span<const double> EdgesOf(const ModelSpec& spec) {
  const auto own = spec.histogram_buckets.find(kName.view());
  return own == spec.histogram_buckets.end() ? kFamily<kName>.buckets : std::span<const double>(own->second);
}

}  // namespace

// Children of the registry, which all that serve one version share, one after the other, or for a moment two.
class VersionMetrics {
 public:
  VersionMetrics(MetricRegistry& registry, const ModelSpec& spec, const std::string& model, const std::string& version)
      : model_(model),
        version_(version),
        children_(registry),
        requests_(children_, model, version),
        request_duration_(children_.ChildOf<"swizzle_request_duration_seconds">(
            EdgesOf<"swizzle_request_duration_seconds">(spec), model, version)),
        stage_duration_(EdgesOf<"swizzle_stage_duration_seconds">(spec), children_, model, version),
        queue_depth_(children_.Child<"swizzle_queue_depth">(model, version)),
        inflight_(children_.Child<"swizzle_inflight_requests">(model, version)),
        rejected_(children_, model, version),
        rejected_queue_(EdgesOf<"swizzle_rejected_queue_seconds">(spec), children_, model, version),
        lookups_(children_, model, version),
        inferences_(children_.Child<"swizzle_inferences_total">(model, version)),
        batches_(children_, model, version),
        batch_size_(children_.ChildOf<"swizzle_batch_size">(EdgesOf<"swizzle_batch_size">(spec), model, version)),
        batch_positions_(
            children_.ChildOf<"swizzle_batch_positions">(EdgesOf<"swizzle_batch_positions">(spec), model, version)),
        ready_(children_.Child<"swizzle_model_ready">(model, version)),
        load_duration_(children_.Child<"swizzle_model_load_duration_seconds">(model, version)),
        tuning_state_(children_, model, version),
        tuning_seconds_(children_.Child<"swizzle_model_tuning_seconds_total">(model, version)),
        replacements_(children_.Child<"swizzle_plan_replacements_total">(model, version)),
        suspect_(children_.Child<"swizzle_suspect_measurements">(model, version)),
        registry_(registry) {
    ready_.Set(1);
  }

  // Of an executor.
  Counter& Busy(const std::string& device, int stream) {
    const MutexLock lock(mutex_);
    Counter*& busy = busy_[{device, stream}];
    if (busy == nullptr) {
      busy = &children_.Child<"swizzle_stream_busy_seconds_total">(model_, version_, device, stream);
    }
    return *busy;
  }

  VersionTotals Totals() const {
    VersionTotals totals{model_, version_, statistics_.Totals(), {}, queue_depth_.Value()};
    for (size_t i = 0; i < totals.requests.size(); ++i) {
      totals.requests[i] = requests_[static_cast<StatusCode>(i)].Value();
    }
    return totals;
  }

  // What is true of the plan that serves.
  struct Shown {
    absl::Duration load_time;
    std::shared_ptr<const ModelFacts> facts;
    TuningState tuning = TuningState::kOff;
    int64_t suspect = 0;
  };
  void Show(const Shown& shown) {
    const MutexLock lock(mutex_);
    load_duration_.Set(absl::ToDoubleSeconds(shown.load_time));
    for (size_t i = 0; i < kLabelValues<TuningState>.size(); ++i) {
      const auto state = static_cast<TuningState>(i);
      tuning_state_[state].Set(state == shown.tuning ? 1 : 0);
    }
    suspect_.Set(static_cast<double>(shown.suspect));
    if (facts_ == shown.facts) return;
    facts_ = shown.facts;
    ShowFacts(*facts_);
  }

 private:
  friend class PrometheusModelMetrics;

  void ShowFacts(const ModelFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    facts_children_.reset();  // those before are withdrawn
    ChildScope& children = facts_children_.emplace(registry_);
    children.Set<"swizzle_model_sparsity_ratio">(facts.sparsity, model_, version_);
    children.Set<"swizzle_dense_fallback_layers">(facts.dense_fallback_layers, model_, version_);
    const auto set_bytes = [&](WeightBytes kind, int64_t bytes) {
      children.Set<"swizzle_model_weight_bytes">(static_cast<double>(bytes), model_, version_, kind);
    };
    set_bytes(WeightBytes::kDense, facts.dense_bytes);
    set_bytes(WeightBytes::kStored, facts.stored_bytes);
    set_bytes(WeightBytes::kDevice, facts.device_bytes);
    for (const ModelFacts::KernelUse& use : facts.kernels) {
      children.Set<"swizzle_kernel_selected">(use.layers, model_, version_, facts.device, use.op, use.kernel);
    }
  }

  const std::string model_, version_;
  ChildScope children_;
  const ChildPerValue<"swizzle_requests_total", StatusCode> requests_;
  Histogram& request_duration_;
  const ChildPerValue<"swizzle_stage_duration_seconds", Stage> stage_duration_;
  Gauge& queue_depth_;
  Gauge& inflight_;
  const ChildPerValue<"swizzle_rejected_requests_total", Rejection> rejected_;
  const ChildPerValue<"swizzle_rejected_queue_seconds", Rejection> rejected_queue_;
  const ChildPerValue<"swizzle_response_cache_lookups_total", CacheLookup> lookups_;
  Counter& inferences_;
  const ChildPerValue<"swizzle_batches_total", BatchReason> batches_;
  Histogram& batch_size_;
  Histogram& batch_positions_;
  Gauge& ready_;
  Gauge& load_duration_;
  const ChildPerValue<"swizzle_model_tuning_state", TuningState> tuning_state_;
  Counter& tuning_seconds_;
  Counter& replacements_;
  Gauge& suspect_;
  MetricRegistry& registry_;
  StatisticsRecorder statistics_;
  Mutex mutex_;
  std::map<std::pair<std::string, int>, Counter*> busy_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);
  std::optional<ChildScope> facts_children_ ABSL_GUARDED_BY(mutex_);
};

class PrometheusModelMetrics final : public ModelMetrics {
 public:
  PrometheusModelMetrics(VersionRecords& records, VersionRecords::Record& record, const ModelSpec& spec,
                         const ModelFacts& facts, absl::Duration load_time, Clock& clock, Activity& activity)
      : clock_(clock), activity_(activity), records_(records), record_(record), its_(*record.metrics) {
    shown_.load_time = load_time;
    shown_.facts = std::make_shared<const ModelFacts>(facts);
    for (int i = 0; i < spec.executors(); ++i) busy_.push_back(&its_.Busy(facts.device, i));
  }
  ~PrometheusModelMetrics() override { records_.Leave(record_, *this); }

  // REQUIRES: it is the last that came of its version.
  void Show() {
    const MutexLock lock(mutex_);
    its_.Show(shown_);
  }

  void RecordRequest(StatusCode code, absl::Duration duration) override {
    its_.requests_[code].Increment();
    if (code == StatusCode::kOk) its_.request_duration_.Observe(absl::ToDoubleSeconds(duration));
    its_.statistics_.AddRequest(code, duration);
  }

  void RecordQueued(absl::Duration queue) override {
    its_.stage_duration_[Stage::kQueue].Observe(absl::ToDoubleSeconds(queue));
    its_.statistics_.AddQueued(queue);
  }

  void RecordBatch(const ExecutedBatch& batch) override {
    its_.stage_duration_[Stage::kInput].Observe(absl::ToDoubleSeconds(batch.times.input));
    its_.stage_duration_[Stage::kCompute].Observe(absl::ToDoubleSeconds(batch.times.compute));
    its_.stage_duration_[Stage::kOutput].Observe(absl::ToDoubleSeconds(batch.times.output));
    its_.batch_size_.Observe(static_cast<double>(batch.rows));
    its_.batch_positions_.Observe(static_cast<double>(batch.positions));
    its_.inferences_.Increment(static_cast<double>(batch.rows));
    its_.batches_[batch.reason].Increment();
    its_.statistics_.AddBatch(batch.requests, batch.rows, batch.times, clock_.WallNow());
  }

  void RecordRejected(Rejection why, absl::Duration queued) override {
    its_.rejected_[why].Increment();
    its_.rejected_queue_[why].Observe(absl::ToDoubleSeconds(queued));
  }
  void RecordCacheLookup(CacheLookup found, absl::Duration duration) override {
    its_.lookups_[found].Increment();
    its_.statistics_.AddCacheLookup(found, duration);
  }
  void SetQueueDepth(int64_t requests) override {
    its_.queue_depth_.Increment(static_cast<double>(requests - queued_.exchange(requests, std::memory_order_relaxed)));
  }
  void AddInflight(int64_t delta) override {
    its_.inflight_.Increment(static_cast<double>(delta));
    activity_.Add(delta);
  }
  void AddBusy(int stream, absl::Duration busy) override {
    busy_[static_cast<size_t>(stream)]->Increment(absl::ToDoubleSeconds(busy));
  }
  void RecordTuning(const TuningRecord& record) override {
    its_.tuning_seconds_.Increment(absl::ToDoubleSeconds(record.spent));
    if (record.replaced != nullptr) its_.replacements_.Increment();
    {
      const MutexLock lock(mutex_);
      shown_.tuning = record.state;
      shown_.suspect = record.suspect;
      if (record.replaced != nullptr) shown_.facts = record.replaced;
    }
    records_.ShowLast(record_);
  }
  ModelStatisticsTotals Statistics() const override { return its_.statistics_.Totals(); }

 private:
  Clock& clock_;
  Activity& activity_;
  VersionRecords& records_;
  VersionRecords::Record& record_;
  VersionMetrics& its_;
  std::vector<Counter*> busy_;  // [stream]
  std::atomic<int64_t> queued_ = 0;
  Mutex mutex_;
  VersionMetrics::Shown shown_ ABSL_GUARDED_BY(mutex_);
};

VersionRecords::VersionRecords(MetricRegistry& registry, Clock& clock, Activity& activity)
    : registry_(registry), clock_(clock), activity_(activity) {}

VersionRecords::~VersionRecords() = default;

std::unique_ptr<ModelMetrics> VersionRecords::Enter(const ModelSpec& spec, const ModelFacts& facts,
                                                    absl::Duration load_time) {
  const MutexLock lock(mutex_);
  const std::string version = std::to_string(spec.version);
  const auto at = records_.try_emplace({spec.name, version}).first;
  Record& record = at->second;
  const absl::Cleanup nobody_came = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // memory may be out
    if (record.users.empty()) records_.erase(at);
  };
  if (record.metrics == nullptr) record.metrics = std::make_shared<VersionMetrics>(registry_, spec, spec.name, version);
  record.users.reserve(record.users.size() + 1);
  auto entered = std::make_unique<PrometheusModelMetrics>(*this, record, spec, facts, load_time, clock_, activity_);
  record.users.push_back(entered.get());
  entered->Show();
  return entered;
}

void VersionRecords::Leave(Record& record, const PrometheusModelMetrics& user) {
  const MutexLock lock(mutex_);
  std::erase(record.users, &user);
  if (!record.users.empty()) return record.users.back()->Show();
  std::erase_if(records_, [&](const auto& entry) { return &entry.second == &record; });
}

void VersionRecords::ShowLast(Record& record) {
  const MutexLock lock(mutex_);
  if (!record.users.empty()) record.users.back()->Show();
}

std::vector<VersionTotals> VersionRecords::Totals() const {
  const MutexLock lock(mutex_);
  std::vector<VersionTotals> versions;
  for (const auto& [name, record] : records_) versions.push_back(record.metrics->Totals());
  return versions;
}

void VersionRecords::CountUnserved(std::string_view model, int64_t version, StatusCode code) {
  const MutexLock lock(mutex_);
  registry_.Child<"swizzle_requests_total">(model, version, code).Increment();
}

}  // namespace swizzle
