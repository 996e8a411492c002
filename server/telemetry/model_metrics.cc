#include "server/telemetry/model_metrics.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/mutex.h"
#include "server/telemetry/statistics.h"

namespace swizzle {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Gauges that are withdrawn on destruction: facts that are true only while a model is loaded.
class Facts {
 public:
  explicit Facts(MetricRegistry& registry) : registry_(registry) {}
  ~Facts() {
    for (auto& [family, gauge] : gauges_) family->Remove(gauge);
  }
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  template <FamilyName kName, typename... Values>
  void Set(double value, const Values&... labels) {
    Gauge& gauge = registry_.Child<kName>(labels...);
    gauge.Set(value);
    gauges_.emplace_back(&registry_.Family<kName>(), &gauge);
  }

 private:
  MetricRegistry& registry_;
  std::vector<std::pair<Family<Gauge>*, Gauge*>> gauges_;
};

class PrometheusModelMetrics final : public ModelMetrics {
 public:
  PrometheusModelMetrics(MetricRegistry& registry, const ModelSpec& spec, const ModelFacts& facts,
                         absl::Duration load_time, Clock& clock, Activity& activity, TritonMetrics& triton)
      : clock_(clock),
        activity_(activity),
        triton_(triton),
        model_(spec.name),
        version_(std::to_string(spec.version)),
        requests_(registry, model_, version_),
        request_duration_(registry.Child<"swizzle_request_duration_seconds">(model_, version_)),
        stage_duration_(registry, model_, version_),
        queue_depth_(registry.Child<"swizzle_queue_depth">(model_, version_)),
        inflight_(registry.Child<"swizzle_inflight_requests">(model_, version_)),
        rejected_(registry, model_, version_),
        rejected_queue_(registry, model_, version_),
        inferences_(registry.Child<"swizzle_inferences_total">(model_, version_)),
        batches_(registry, model_, version_),
        batch_size_(registry.Child<"swizzle_batch_size">(model_, version_)),
        batch_positions_(registry.Child<"swizzle_batch_positions">(model_, version_)),
        ready_(registry.Child<"swizzle_model_ready">(model_, version_)),
        tuning_state_(registry, model_, version_),
        tuning_seconds_(registry.Child<"swizzle_model_tuning_seconds_total">(model_, version_)),
        replacements_(registry.Child<"swizzle_plan_replacements_total">(model_, version_)),
        suspect_(registry.Child<"swizzle_suspect_measurements">(model_, version_)),
        load_facts_(registry),
        registry_(registry) {
    for (int i = 0; i < spec.executors(); ++i) {
      busy_.push_back(&registry.Child<"swizzle_stream_busy_seconds_total">(model_, version_, facts.device, i));
    }
    load_facts_.Set<"swizzle_model_load_duration_seconds">(absl::ToDoubleSeconds(load_time), model_, version_);
    SetFacts(facts);
    RecordTuning({});
    ready_.Set(1);
    triton_.Add(model_, version_, *this);
  }
  ~PrometheusModelMetrics() override {
    triton_.Remove(model_, version_, *this);
    ready_.Set(0);
  }

  void RecordRequest(StatusCode code, absl::Duration duration) override {
    requests_[code].Increment();
    if (code == StatusCode::kOk) request_duration_.Observe(absl::ToDoubleSeconds(duration));
    statistics_.AddRequest(code, duration);
  }

  void RecordQueued(absl::Duration queue) override {
    stage_duration_[Stage::kQueue].Observe(absl::ToDoubleSeconds(queue));
    statistics_.AddQueued(queue);
  }

  void RecordBatch(const ExecutedBatch& batch) override {
    stage_duration_[Stage::kInput].Observe(absl::ToDoubleSeconds(batch.times.input));
    stage_duration_[Stage::kCompute].Observe(absl::ToDoubleSeconds(batch.times.compute));
    stage_duration_[Stage::kOutput].Observe(absl::ToDoubleSeconds(batch.times.output));
    batch_size_.Observe(static_cast<double>(batch.rows));
    batch_positions_.Observe(static_cast<double>(batch.positions));
    inferences_.Increment(static_cast<double>(batch.rows));
    batches_[batch.reason].Increment();
    statistics_.AddBatch(batch.requests, batch.rows, batch.times, clock_.WallNow());
  }

  void RecordRejected(Rejection why, absl::Duration queued) override {
    rejected_[why].Increment();
    rejected_queue_[why].Observe(absl::ToDoubleSeconds(queued));
  }
  void SetQueueDepth(int64_t requests) override { queue_depth_.Set(static_cast<double>(requests)); }
  void AddInflight(int64_t delta) override {
    inflight_.Increment(static_cast<double>(delta));
    activity_.Add(delta);
  }
  void AddBusy(int stream, absl::Duration busy) override {
    busy_[static_cast<size_t>(stream)]->Increment(absl::ToDoubleSeconds(busy));
  }
  void RecordTuning(const TuningRecord& record) override {
    for (size_t i = 0; i < kLabelValues<TuningState>.size(); ++i) {
      const auto state = static_cast<TuningState>(i);
      tuning_state_[state].Set(state == record.state ? 1 : 0);
    }
    tuning_seconds_.Increment(absl::ToDoubleSeconds(record.spent));
    suspect_.Set(static_cast<double>(record.suspect));
    if (record.replaced == nullptr) return;
    replacements_.Increment();
    SetFacts(*record.replaced);
  }
  ModelStatisticsTotals Statistics() const override { return statistics_.Totals(); }

 private:
  void SetFacts(const ModelFacts& facts) {
    const MutexLock lock(facts_mutex_);
    facts_.emplace(registry_);  // those before are withdrawn
    facts_->Set<"swizzle_model_sparsity_ratio">(facts.sparsity, model_, version_);
    facts_->Set<"swizzle_dense_fallback_layers">(facts.dense_fallback_layers, model_, version_);
    SetWeightBytes(WeightBytes::kDense, facts.dense_bytes);
    SetWeightBytes(WeightBytes::kStored, facts.stored_bytes);
    SetWeightBytes(WeightBytes::kDevice, facts.device_bytes);
    for (const ModelFacts::KernelUse& use : facts.kernels) {
      facts_->Set<"swizzle_kernel_selected">(use.layers, model_, version_, facts.device, use.op, use.kernel);
    }
  }
  void SetWeightBytes(WeightBytes kind, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(facts_mutex_) {
    facts_->Set<"swizzle_model_weight_bytes">(static_cast<double>(bytes), model_, version_, kind);
  }

  Clock& clock_;
  Activity& activity_;
  TritonMetrics& triton_;
  const std::string model_, version_;
  const ChildPerValue<"swizzle_requests_total", StatusCode> requests_;
  Histogram& request_duration_;
  const ChildPerValue<"swizzle_stage_duration_seconds", Stage> stage_duration_;
  Gauge& queue_depth_;
  Gauge& inflight_;
  const ChildPerValue<"swizzle_rejected_requests_total", Rejection> rejected_;
  const ChildPerValue<"swizzle_rejected_queue_seconds", Rejection> rejected_queue_;
  Counter& inferences_;
  const ChildPerValue<"swizzle_batches_total", BatchReason> batches_;
  Histogram& batch_size_;
  Histogram& batch_positions_;
  Gauge& ready_;
  std::vector<Counter*> busy_;  // [stream]
  const ChildPerValue<"swizzle_model_tuning_state", TuningState> tuning_state_;
  Counter& tuning_seconds_;
  Counter& replacements_;
  Gauge& suspect_;
  Facts load_facts_;
  MetricRegistry& registry_;
  Mutex facts_mutex_;
  std::optional<Facts> facts_ ABSL_GUARDED_BY(facts_mutex_);  // of the plan that runs
  StatisticsRecorder statistics_;
};

}  // namespace

std::unique_ptr<ModelMetrics> NewModelMetrics(MetricRegistry& registry, const ModelSpec& spec, const ModelFacts& facts,
                                              absl::Duration load_time, Clock& clock, Activity& activity,
                                              TritonMetrics& triton) {
  return std::make_unique<PrometheusModelMetrics>(registry, spec, facts, load_time, clock, activity, triton);
}

}  // namespace swizzle
