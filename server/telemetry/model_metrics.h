// What is recorded for one version of one model, as children of the registry's families.
#ifndef SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/model/model.h"
#include "server/telemetry/metric_registry.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/triton_metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

class VersionMetrics;
class PrometheusModelMetrics;

// The versions that have metrics. Where a version is replaced, counters go on, and gauges tell of what came last; where
// nothing serves it any more, its children are removed. Thread-safe.
class VersionRecords {
 public:
  // All outlive this.
  VersionRecords(MetricRegistry& registry, Clock& clock, Activity& activity);
  // REQUIRES: all that Enter gave is gone.
  ~VersionRecords();

  std::unique_ptr<ModelMetrics> Enter(const ModelSpec& spec, const ModelFacts& facts, absl::Duration load_time);
  // What those that are there have counted.
  std::vector<VersionTotals> Totals() const;
  // Of a request to a model that doesn't serve, beside those that its versions count.
  void CountUnserved(std::string_view model, int64_t version, StatusCode code);

 private:
  friend class PrometheusModelMetrics;
  struct Record {
    std::shared_ptr<VersionMetrics> metrics = nullptr;
    std::vector<PrometheusModelMetrics*> users = {};  // in the order in which they came
  };

  void Leave(Record& record, const PrometheusModelMetrics& user);
  void ShowLast(Record& record);

  MetricRegistry& registry_;
  Clock& clock_;
  Activity& activity_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Record> records_ ABSL_GUARDED_BY(mutex_);  // by name and version
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_
