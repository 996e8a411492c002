// Triton's names for what is counted already (--metrics-compat=triton), so that its dashboards and alerts show data.
//
// Nothing is counted twice: at a scrape the totals of ModelStatistics, which counts as Triton does, and the registry's
// codes and queues get these names. A counter goes on where a version is replaced by another load of it; where none
// is left, its samples are gone, as Triton's are.
#ifndef SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/mutex.h"
#include "server/telemetry/metric_registry.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

// Thread-safe. The registry outlives it.
class TritonMetrics {
 public:
  explicit TritonMetrics(MetricRegistry& registry) : registry_(registry) {}

  // `recorded` is of this version, beside others perhaps, until it is removed.
  void Add(const std::string& model, const std::string& version, const ModelMetrics& recorded);
  void Remove(const std::string& model, const std::string& version, const ModelMetrics& recorded);

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Version {
    std::vector<const ModelMetrics*> recorded;
    ModelStatisticsTotals removed;  // of those before; no batches
  };

  MetricRegistry& registry_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Version> versions_ ABSL_GUARDED_BY(mutex_);  // by model and version
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_
