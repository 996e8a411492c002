// Prometheus metrics. Children are resolved when a model is loaded; recording is cheap and thread-safe.
// Names and meaning: the "Metrics" table in the README. prometheus-cpp is included only by metrics.cc.
#ifndef SWIZZLE_SERVER_METRICS_H_
#define SWIZZLE_SERVER_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "kernels/status.h"
#include "server/model.h"

namespace swizzle {

// Totals since load, for the ModelStatistics RPC.
struct ModelStatisticsTotals {
  int64_t last_inference_ms = 0;    // Unix time
  int64_t inference_count = 0;      // rows
  int64_t execution_count = 0;      // batches
  struct Stage { int64_t count = 0; absl::Duration total; };
  Stage success, fail, queue, input, compute, output;  // success and fail: whole requests; stages: per request, as Triton counts
  struct BatchSize { int64_t rows = 0; int64_t count = 0; absl::Duration input, compute, output; };
  std::vector<BatchSize> batches;   // per batch size seen
};

// Everything recorded for one version of one model. Thread-safe.
class ModelMetrics {
 public:
  virtual ~ModelMetrics() = default;
  virtual void RecordRequest(StatusCode code, absl::Duration duration) = 0;   // every request that named this model, once
  virtual void RecordQueued(absl::Duration queue) = 0;                        // as its batch starts
  virtual void RecordBatch(int64_t requests, int64_t rows, int64_t positions, std::string_view reason,
                           const BatchTimes& times) = 0;                      // reason: "full", "idle", "delay", "single"
  virtual void RecordRejected(std::string_view reason) = 0;                   // "queue_full", "timeout", "cancelled", "draining"
  virtual void SetQueueDepth(int64_t requests) = 0;
  virtual void AddInflight(int64_t delta) = 0;
  virtual void AddBusy(int stream, absl::Duration busy) = 0;
  virtual ModelStatisticsTotals Statistics() const = 0;
};

// The registry and its HTTP listener (/metrics, /livez, /readyz, /startupz). Thread-safe.
class Metrics {
 public:
  virtual ~Metrics() = default;
  // Registers the children of one version; destroying the result keeps counters but sets model_ready to 0.
  virtual std::unique_ptr<ModelMetrics> ForModel(const ModelSpec& spec, const ModelFacts& facts, absl::Duration load_time) = 0;
  virtual void RecordLoadFailure(std::string_view model) = 0;
  // What the probes answer.
  virtual void SetLive(bool live) = 0;
  virtual void SetReady(bool ready) = 0;
  virtual void SetStarted(bool started) = 0;
  virtual int port() const = 0;
  virtual std::string Text() const = 0;  // the exposition, as /metrics gives it
};

// Listens on `address` ("0.0.0.0:8002"; port 0 takes a free one). UNAVAILABLE, naming the address, if it can't.
StatusOr<std::unique_ptr<Metrics>> NewMetrics(const std::string& address);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_METRICS_H_
