// Triton's names for what is counted already (--metrics-compat=triton), so that its dashboards and alerts show data.
//
// Nothing is counted twice: at a scrape the totals of ModelStatistics, which counts as Triton does, and the counts of
// codes and the queue's length get these names.
#ifndef SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_

#include <prometheus/metric_family.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "server/telemetry/labels.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

// Of a version that serves, by whatever loads of it.
struct VersionTotals {
  std::string model, version;
  ModelStatisticsTotals totals;
  std::array<double, kLabelValues<StatusCode>.size()> requests = {};  // by StatusCode
  double queued = 0;
};

// Families without samples are left out. Thread-safe.
std::vector<prometheus::MetricFamily> CollectTritonMetrics(std::span<const VersionTotals> versions);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_TRITON_METRICS_H_
