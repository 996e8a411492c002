// Prometheus metrics. Children are resolved when a model is loaded; recording is cheap and thread-safe.
//
// metric_families.h is the table of all there are. Latencies are histograms of 16 buckets from 100 us to 10 s; base
// units throughout.
#ifndef SWIZZLE_SERVER_TELEMETRY_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_METRICS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "kernels/base/status.h"
#include "server/model/model.h"
#include "server/security/authorization.h"
#include "server/security/reloads.h"
#include "server/telemetry/activity.h"
#include "server/telemetry/gpu_sensors.h"
#include "server/telemetry/labels.h"
#include "server/telemetry/tuning_record.h"
#include "server/threading/clock.h"

namespace swizzle {

// Totals since load, for the ModelStatistics RPC, counted as Triton does: every request is a success or a failure once;
// a successful one counts the whole time of each stage of its batch; inferences are rows, executions are batches, and
// only successful ones are counted.
struct ModelStatisticsTotals {
  struct Stage {
    int64_t count = 0;
    absl::Duration total;
  };
  struct BatchSize {
    int64_t rows = 0;   // the size
    int64_t count = 0;  // batches of it
    absl::Duration input, compute, output;
  };

  int64_t last_inference_ms = 0;  // Unix time
  int64_t inference_count = 0;
  int64_t execution_count = 0;
  Stage success, fail;                  // requests, from arrival to answer
  Stage queue, input, compute, output;  // requests
  Stage cache_hit, cache_miss;          // lookups; a request that was found has no other stage
  std::vector<BatchSize> batches;       // per size seen, ascending
};

// A batch that succeeded.
struct ExecutedBatch {
  int64_t requests = 0;
  int64_t rows = 0;
  int64_t positions = 0;
  BatchReason reason = BatchReason::kIdle;  // why it was formed
  BatchTimes times;
};

// Everything recorded for one version of one model. Thread-safe.
class ModelMetrics : public TuningRecorder {
 public:
  // By the service: every request that named this model, once.
  virtual void RecordRequest(StatusCode code, absl::Duration duration) = 0;

  // By the batcher.
  virtual void RecordQueued(absl::Duration queue) = 0;  // per request, of batches that succeeded
  virtual void RecordBatch(const ExecutedBatch& batch) = 0;
  // A request that never ran, and how long it was queued.
  virtual void RecordRejected(Rejection why, absl::Duration queued) = 0;
  // What a request that was looked up found, and how long that took.
  virtual void RecordCacheLookup(CacheLookup found, absl::Duration duration) = 0;
  virtual void SetQueueDepth(int64_t requests) = 0;
  virtual void AddInflight(int64_t delta) = 0;  // requests queued or running
  virtual void AddBusy(int stream, absl::Duration busy) = 0;

  virtual ModelStatisticsTotals Statistics() const = 0;
};

// The label of requests to models that the repository doesn't have; no model can have this name.
inline constexpr std::string_view kUnknownModel = "(unknown)";

// The certificate that is shown to clients.
struct TlsLoad {
  absl::Time expires;
  ReloadCounts reloads;
};

// Files that say who may connect. What is not used is not there.
struct CredentialLoad {
  std::optional<TlsLoad> tls;
  std::optional<ReloadCounts> tokens;
  int64_t unauthenticated = 0, denied = 0;  // calls refused
};

// What calls take of the server.
struct CallLoad {
  int64_t inflight_bytes = 0, inflight_bytes_limit = 0;
  int64_t malformed = 0, too_large = 0, no_room = 0, slow_readers = 0;               // calls refused
  int64_t streams = 0;                                                               // of inference, open
  std::array<int64_t, kLabelValues<StreamedRequest>.size()> streamed_requests = {};  // by StreamedRequest
  int64_t shared_regions = 0, shared_bytes = 0, shared_bytes_limit = 0;
};

// What clients take of the server, and how often it refused them.
struct ClientLoad {
  CallLoad calls;
  int64_t connections = 0, connections_limit = 0, accepted = 0;
  int64_t refused_limit = 0, refused_files = 0, ended_greedy = 0, ended_slow = 0;  // connections
  std::array<int64_t, kLabelValues<ConnectionEnd>.size()> connections_ended = {};  // by ConnectionEnd
  std::array<int64_t, kLabelValues<CallState>.size()> grpc_calls = {};             // by CallState
  int64_t transport_bytes_limit = 0;
  int64_t memory_limit = 0;
  std::array<int64_t, kLabelValues<MemoryUse>.size()> memory_promised = {};  // by MemoryUse
  int64_t run_bytes = 0, run_bytes_limit = 0;
  int64_t response_cache_bytes = 0, response_cache_limit = 0;
  int64_t memory_trims = 0;
  CredentialLoad credentials;
};

// What became of requests that were chosen for the request log and for traces.
struct SampledCounts {
  std::array<int64_t, kLabelValues<LineOutcome>.size()> lines = {};  // by LineOutcome
  std::array<int64_t, kLabelValues<SpanOutcome>.size()> spans = {};  // by SpanOutcome
  int64_t export_failures = 0;
};

struct GpuMemory {
  std::string device;  // "cuda:0"
  DeviceMemory memory;
};

// The registry and its HTTP listener: /metrics, /livez, /readyz, /startupz, and / and /status for people who look.
// Thread-safe.
class Metrics {
 public:
  virtual ~Metrics() = default;
  // Registers the children of one version. What serves it in place of another goes on with that one's counters, and its
  // own facts are shown. Once nothing does, the children are removed. The result must not outlive this.
  virtual std::unique_ptr<ModelMetrics> ForModel(const ModelSpec& spec, const ModelFacts& facts,
                                                 absl::Duration load_time) = 0;
  virtual void RecordLoadFailure(std::string_view model) = 0;
  // A request to a model that doesn't serve. REQUIRES: `model` is of the repository, or kUnknownModel, so that clients
  // can't make labels up.
  virtual void RecordUnserved(std::string_view model, int64_t version, StatusCode code) = 0;
  // Asks at each scrape from now on, from any thread.
  virtual void ShowGpuMemory(std::function<std::vector<GpuMemory>()> ask) = 0;
  virtual void ShowClientLoad(std::function<ClientLoad()> ask) = 0;
  // Metrics are for tokens of their class from now on, and so is why a server is not ready. It outlives this.
  virtual void AskForTokens(const Authorization& authorization) = 0;
  virtual void ShowSampled(std::function<SampledCounts()> ask) = 0;
  // Null: there are none.
  virtual void ShowGpuSensors(std::unique_ptr<GpuSensors> sensors) = 0;
  // From now on / answers this page, and /status what is asked for at each call, as JSON. Null: neither does.
  virtual void ShowStatus(std::string page, std::function<std::string()> ask) = 0;
  // From now on what models and GPUs do is exposed by Triton's names as well.
  virtual void ShowTritonNames() = 0;
  // What the probes answer: 200 or 503. At first the process is live, and neither started nor ready.
  virtual void SetLive(bool live) = 0;
  // why: lines of what is not ready, and for what reason, which the probe adds; each ends with a newline.
  virtual void SetReady(bool ready, std::string why = {}) = 0;
  virtual void SetStarted(bool started) = 0;
  // Of all models' requests.
  virtual const Activity& activity() const = 0;
  virtual int port() const = 0;
  virtual std::string Text() const = 0;  // the exposition, as /metrics gives it
};

// Listens on `address` ("0.0.0.0:8002", "[::]:8002", "localhost:8002"; port 0 takes a free one). INVALID_ARGUMENT for
// anything else; UNAVAILABLE, naming the address, if it cannot be listened on. `clock`, which stamps
// the last inference, outlives the metrics.
StatusOr<std::unique_ptr<Metrics>> NewMetrics(const std::string& address, Clock& clock = Clock::Real());

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_METRICS_H_
