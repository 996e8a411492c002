// Metrics of a model that nobody asks for.
#ifndef SWIZZLE_SERVER_TELEMETRY_NO_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_NO_METRICS_H_

#include "server/telemetry/metrics.h"

namespace swizzle {

// Records nothing; what derives from it records what it overrides. Thread-safe.
class NoMetrics : public ModelMetrics {
 public:
  void RecordRequest(StatusCode, absl::Duration) override {}
  void RecordQueued(absl::Duration) override {}
  void RecordBatch(const ExecutedBatch&) override {}
  void RecordRejected(Rejection, absl::Duration) override {}
  void RecordCacheLookup(CacheLookup, absl::Duration) override {}
  void SetQueueDepth(int64_t) override {}
  void AddInflight(int64_t) override {}
  void AddBusy(int, absl::Duration) override {}
  void RecordTuning(const TuningRecord&) override {}
  ModelStatisticsTotals Statistics() const override { return {}; }
};

inline ModelMetrics& OrNone(ModelMetrics* metrics) {
  static NoMetrics none;
  return metrics == nullptr ? none : *metrics;
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_NO_METRICS_H_
