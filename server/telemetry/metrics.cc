#include "server/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <functional>
#include <sstream>
#include <utility>

#include "server/telemetry/http_listener.h"
#include "server/telemetry/labels.h"
#include "server/telemetry/process_statistics.h"
#include "server/telemetry/statistics.h"
#include "server/threading/mutex.h"

namespace swizzle {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

const Histogram::BucketBoundaries& LatencyBuckets() {
  static const Histogram::BucketBoundaries buckets = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2,
                                                      5e-2, 1e-1, 2e-1, 5e-1, 1.0,  2.0,  5.0,  10.0};
  return buckets;
}

const Histogram::BucketBoundaries& BatchSizeBuckets() {
  static const Histogram::BucketBoundaries buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  return buckets;
}

const Histogram::BucketBoundaries& PositionBuckets() {
  static const Histogram::BucketBoundaries buckets = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
  return buckets;
}

template <typename Builder>
auto& Register(Builder builder, prometheus::Registry& registry, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}

// Every family there is; PrometheusModelMetrics gives them their labels.
struct Families {
  explicit Families(prometheus::Registry& r)
      : requests(
            Register(BuildCounter(), r, "swizzle_requests_total", "Inference requests answered, by gRPC status code.")),
        request_duration(Register(BuildHistogram(), r, "swizzle_request_duration_seconds",
                                  "Time from a request's arrival to its answer.")),
        stage_duration(Register(BuildHistogram(), r, "swizzle_stage_duration_seconds",
                                "Time spent in a stage: queue, per request; input (gathering), compute and output "
                                "(scattering), per batch.")),
        batch_size(Register(BuildHistogram(), r, "swizzle_batch_size", "Rows per executed batch.")),
        batch_positions(Register(BuildHistogram(), r, "swizzle_batch_positions",
                                 "Positions per executed batch: rows times the spatial extent of the first input.")),
        inferences(Register(BuildCounter(), r, "swizzle_inferences_total", "Rows inferred.")),
        batches(Register(BuildCounter(), r, "swizzle_batches_total",
                         "Batches executed, by why they were formed: full, idle (an executor was free), delay, "
                         "preferred (a preferred size was reached), single (batching is off).")),
        queue_depth(Register(BuildGauge(), r, "swizzle_queue_depth", "Requests queued.")),
        inflight(Register(BuildGauge(), r, "swizzle_inflight_requests", "Requests queued or running.")),
        rejected(Register(BuildCounter(), r, "swizzle_rejected_requests_total",
                          "Requests that never ran: queue_full, timeout, cancelled, draining.")),
        ready(Register(BuildGauge(), r, "swizzle_model_ready", "1 while this version serves.")),
        load_duration(Register(BuildGauge(), r, "swizzle_model_load_duration_seconds",
                               "Time that loading this version took, kernel selection included.")),
        load_failures(Register(BuildCounter(), r, "swizzle_model_load_failures_total", "Loads that failed.")),
        sparsity(Register(BuildGauge(), r, "swizzle_model_sparsity_ratio", "Share of zeros in all weights.")),
        weight_bytes(Register(BuildGauge(), r, "swizzle_model_weight_bytes",
                              "Bytes of weights: dense (had they been stored so), stored (in the model's formats), "
                              "device (as the kernels hold them).")),
        kernel_selected(Register(BuildGauge(), r, "swizzle_kernel_selected",
                                 "Layers that run on this kernel, by operation and device.")),
        dense_fallback(Register(BuildGauge(), r, "swizzle_dense_fallback_layers",
                                "Layers with sparse weights for which a dense kernel is faster.")),
        stream_busy(Register(BuildCounter(), r, "swizzle_stream_busy_seconds_total",
                             "Time that an executor's stream has been running batches.")) {}

  Family<Counter>& requests;
  Family<Histogram>& request_duration;
  Family<Histogram>& stage_duration;
  Family<Histogram>& batch_size;
  Family<Histogram>& batch_positions;
  Family<Counter>& inferences;
  Family<Counter>& batches;
  Family<Gauge>& queue_depth;
  Family<Gauge>& inflight;
  Family<Counter>& rejected;
  Family<Gauge>& ready;
  Family<Gauge>& load_duration;
  Family<Counter>& load_failures;
  Family<Gauge>& sparsity;
  Family<Gauge>& weight_bytes;
  Family<Gauge>& kernel_selected;
  Family<Gauge>& dense_fallback;
  Family<Counter>& stream_busy;
};

Labels With(Labels labels, const std::string& name, std::string_view value) {
  labels[name] = std::string(value);
  return labels;
}

// Gauges that are withdrawn on destruction: facts that are true only while a model is loaded.
class Facts {
 public:
  ~Facts() {
    for (auto& [family, gauge] : gauges_) family->Remove(gauge);
  }
  void Set(Family<Gauge>& family, const Labels& labels, double value) {
    Gauge& gauge = family.Add(labels);
    gauge.Set(value);
    gauges_.emplace_back(&family, &gauge);
  }

 private:
  std::vector<std::pair<Family<Gauge>*, Gauge*>> gauges_;
};

class PrometheusModelMetrics final : public ModelMetrics {
 public:
  PrometheusModelMetrics(Families& families, const ModelSpec& spec, const ModelFacts& facts, absl::Duration load_time,
                         Clock& clock)
      : families_(families),
        clock_(clock),
        labels_({{"model", spec.name}, {"version", std::to_string(spec.version)}}),
        request_duration_(families.request_duration.Add(labels_, LatencyBuckets())),
        queue_(Stage("queue")),
        input_(Stage("input")),
        compute_(Stage("compute")),
        output_(Stage("output")),
        batch_size_(families.batch_size.Add(labels_, BatchSizeBuckets())),
        batch_positions_(families.batch_positions.Add(labels_, PositionBuckets())),
        inferences_(families.inferences.Add(labels_)),
        queue_depth_(families.queue_depth.Add(labels_)),
        inflight_(families.inflight.Add(labels_)),
        ready_(families.ready.Add(labels_)) {
    for (size_t i = 0; i < kReasons.size(); ++i) {
      batches_[i] = &families.batches.Add(With(labels_, "reason", kReasons[i]));
    }
    for (size_t i = 0; i < kRejections.size(); ++i) {
      rejected_[i] = &families.rejected.Add(With(labels_, "reason", kRejections[i]));
    }
    for (size_t i = 0; i < requests_.size(); ++i) requests_[i] = &RequestCounter(static_cast<StatusCode>(i));
    const Labels device = With(labels_, "device", facts.device);
    for (int i = 0; i < spec.executors(); ++i) {
      busy_.push_back(&families.stream_busy.Add(With(device, "stream", std::to_string(i))));
    }
    SetFacts(facts, device, load_time);
    ready_.Set(1);
  }
  ~PrometheusModelMetrics() override { ready_.Set(0); }

  void RecordRequest(StatusCode code, absl::Duration duration) override {
    const auto index = static_cast<size_t>(code);
    if (index < requests_.size()) requests_[index]->Increment();
    request_duration_.Observe(absl::ToDoubleSeconds(duration));
    statistics_.AddRequest(code, duration);
  }

  void RecordQueued(absl::Duration queue) override {
    queue_.Observe(absl::ToDoubleSeconds(queue));
    statistics_.AddQueued(queue);
  }

  void RecordBatch(int64_t requests, int64_t rows, int64_t positions, std::string_view reason,
                   const BatchTimes& times) override {
    input_.Observe(absl::ToDoubleSeconds(times.input));
    compute_.Observe(absl::ToDoubleSeconds(times.compute));
    output_.Observe(absl::ToDoubleSeconds(times.output));
    batch_size_.Observe(static_cast<double>(rows));
    batch_positions_.Observe(static_cast<double>(positions));
    inferences_.Increment(static_cast<double>(rows));
    Increment(kReasons, batches_, reason);
    statistics_.AddBatch(requests, rows, times, clock_.WallNow());
  }

  void RecordRejected(std::string_view reason) override { Increment(kRejections, rejected_, reason); }
  void SetQueueDepth(int64_t requests) override { queue_depth_.Set(static_cast<double>(requests)); }
  void AddInflight(int64_t delta) override { inflight_.Increment(static_cast<double>(delta)); }
  void AddBusy(int stream, absl::Duration busy) override {
    busy_[static_cast<size_t>(stream)]->Increment(absl::ToDoubleSeconds(busy));
  }
  ModelStatisticsTotals Statistics() const override { return statistics_.Totals(); }

 private:
  static constexpr auto& kReasons = kBatchReasonNames;
  static constexpr std::array<std::string_view, 4> kRejections = {"queue_full", "timeout", "cancelled", "draining"};
  static constexpr size_t kCodes = 17;  // gRPC's canonical codes

  template <size_t kCount>
  static void Increment(const std::array<std::string_view, kCount>& names, std::array<Counter*, kCount>& counters,
                        std::string_view name) {
    for (size_t i = 0; i < kCount; ++i) {
      if (names[i] == name) return counters[i]->Increment();
    }
  }

  Histogram& Stage(const char* stage) {
    return families_.stage_duration.Add(With(labels_, "stage", stage), LatencyBuckets());
  }
  Counter& RequestCounter(StatusCode code) {
    return families_.requests.Add(With(labels_, "code", absl::StatusCodeToString(code)));
  }

  void SetFacts(const ModelFacts& facts, const Labels& device, absl::Duration load_time) {
    facts_.Set(families_.load_duration, labels_, absl::ToDoubleSeconds(load_time));
    facts_.Set(families_.sparsity, labels_, facts.sparsity);
    facts_.Set(families_.dense_fallback, labels_, facts.dense_fallback_layers);
    const std::pair<const char*, int64_t> kinds[] = {
        {"dense", facts.dense_bytes}, {"stored", facts.stored_bytes}, {"device", facts.device_bytes}};
    for (const auto& [kind, bytes] : kinds) {
      facts_.Set(families_.weight_bytes, With(labels_, "kind", kind), static_cast<double>(bytes));
    }
    for (const ModelFacts::KernelUse& use : facts.kernels) {
      facts_.Set(families_.kernel_selected, With(With(device, "op", use.op), "kernel", use.kernel), use.layers);
    }
  }

  Families& families_;
  Clock& clock_;
  const Labels labels_;
  Histogram& request_duration_;
  Histogram& queue_;
  Histogram& input_;
  Histogram& compute_;
  Histogram& output_;
  Histogram& batch_size_;
  Histogram& batch_positions_;
  Counter& inferences_;
  Gauge& queue_depth_;
  Gauge& inflight_;
  Gauge& ready_;
  std::array<Counter*, kCodes> requests_;
  std::array<Counter*, kBatchReasonNames.size()> batches_;
  std::array<Counter*, kRejections.size()> rejected_;
  std::vector<Counter*> busy_;  // [stream]
  Facts facts_;
  StatisticsRecorder statistics_;
};

// process_*, read from /proc at each scrape.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override {
    const std::optional<ProcessStatistics> process = ReadProcessStatistics();
    if (!process.has_value()) return {};

    return {
        Value("process_cpu_seconds_total", "User and system CPU time spent.", MetricType::Counter,
              process->cpu_seconds),
        Value("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge, process->resident_bytes),
        Value("process_virtual_memory_bytes", "Virtual memory.", MetricType::Gauge, process->virtual_bytes),
        Value("process_start_time_seconds", "Start of the process since the Unix epoch.", MetricType::Gauge,
              process->start_time_seconds),
        Value("process_open_fds", "Open file descriptors.", MetricType::Gauge, process->open_fds),
        Value("process_max_fds", "File descriptors that may be open.", MetricType::Gauge, process->max_fds),
    };
  }

 private:
  static MetricFamily Value(const char* name, const char* help, MetricType type, double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    metric.gauge.value = value;
    return {.name = name, .help = help, .type = type, .metric = {metric}};
  }
};

// swizzle_gpu_*, asked for at each scrape. Thread-safe.
class GpuMetrics final : public prometheus::Collectable {
 public:
  void Ask(std::function<std::vector<GpuMemory>()> ask) {
    const MutexLock lock(mutex_);
    ask_ = std::move(ask);
  }

  std::vector<MetricFamily> Collect() const override {
    const MutexLock lock(mutex_);
    if (!ask_) return {};
    MetricFamily used = Family("swizzle_gpu_memory_used_bytes", "Memory of the GPU in use, by any process.");
    MetricFamily total = Family("swizzle_gpu_memory_total_bytes", "Memory of the GPU.");
    for (const GpuMemory& gpu : ask_()) {
      used.metric.push_back(Value(gpu.device, gpu.memory.used));
      total.metric.push_back(Value(gpu.device, gpu.memory.total));
    }
    if (used.metric.empty()) return {};
    return {std::move(used), std::move(total)};
  }

 private:
  static MetricFamily Family(const char* name, const char* help) {
    return {.name = name, .help = help, .type = MetricType::Gauge, .metric = {}};
  }
  static prometheus::ClientMetric Value(const std::string& device, int64_t bytes) {
    prometheus::ClientMetric metric;
    metric.label = {{"device", device}};
    metric.gauge.value = static_cast<double>(bytes);
    return metric;
  }

  mutable Mutex mutex_;
  std::function<std::vector<GpuMemory>()> ask_ ABSL_GUARDED_BY(mutex_);
};

class PrometheusMetrics final : public Metrics {
 public:
  explicit PrometheusMetrics(Clock& clock) : clock_(clock), families_(registry_) {
    Register(BuildGauge(), registry_, "swizzle_build_info", "1, labelled with what this server is.")
        .Add({{"version", SWIZZLE_VERSION}, {"compiler", __VERSION__}})
        .Set(1);
  }

  Status Listen(const std::string& address) {
    SWIZZLE_ASSIGN_OR_RETURN(listener_,
                             NewHttpListener(address, [this](std::string_view path) { return Answer(path); }));
    return absl::OkStatus();
  }

  std::unique_ptr<ModelMetrics> ForModel(const ModelSpec& spec, const ModelFacts& facts,
                                         absl::Duration load_time) override {
    families_.load_failures.Add({{"model", spec.name}});  // at 0, so that a first failure is seen as an increase
    return std::make_unique<PrometheusModelMetrics>(families_, spec, facts, load_time, clock_);
  }
  void RecordLoadFailure(std::string_view model) override {
    families_.load_failures.Add({{"model", std::string(model)}}).Increment();
  }
  void ShowGpuMemory(std::function<std::vector<GpuMemory>()> ask) override { gpus_.Ask(std::move(ask)); }
  void SetLive(bool live) override { live_ = live; }
  void SetReady(bool ready) override { ready_ = ready; }
  void SetStarted(bool started) override { started_ = started; }
  int port() const override { return listener_->port(); }

  std::string Text() const override {
    std::vector<MetricFamily> families = registry_.Collect();
    for (auto& family : process_.Collect()) families.push_back(std::move(family));
    for (auto& family : gpus_.Collect()) families.push_back(std::move(family));
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  HttpResponse Answer(std::string_view path) const {
    if (path == "/metrics") return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = Text()};
    if (path == "/livez") return Probe(live_, "live");
    if (path == "/readyz") return Probe(ready_, "ready");
    if (path == "/startupz") return Probe(started_, "started");
    return {.status = 404, .body = "served here: /metrics /livez /readyz /startupz\n"};
  }

  static HttpResponse Probe(bool holds, std::string_view what) {
    if (holds) return {.body = "ok\n"};
    return {.status = 503, .body = Concat("not ", what, "\n")};
  }

  Clock& clock_;
  prometheus::Registry registry_;
  Families families_;
  const ProcessMetrics process_;
  GpuMetrics gpus_;
  std::atomic<bool> live_ = true;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> started_ = false;
  std::unique_ptr<HttpListener> listener_;  // last: its threads use all of the above
};

}  // namespace

StatusOr<std::unique_ptr<Metrics>> NewMetrics(const std::string& address, Clock& clock) {
  auto metrics = std::make_unique<PrometheusMetrics>(clock);
  SWIZZLE_RETURN_IF_ERROR(Annotate(metrics->Listen(address), "metrics"));
  return metrics;
}

}  // namespace swizzle
