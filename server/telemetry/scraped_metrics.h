// Metrics that are asked for at each scrape: of the process, GPUs, clients, and of requests that are logged or traced.
#ifndef SWIZZLE_SERVER_TELEMETRY_SCRAPED_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_SCRAPED_METRICS_H_

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <vector>

#include "kernels/base/mutex.h"
#include "server/telemetry/gpu_sensors.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

// None where /proc can't be read. Thread-safe.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

// Thread-safe.
class GpuMetrics {
 public:
  void Ask(std::function<std::vector<GpuMemory>()> ask);
  std::vector<prometheus::MetricFamily> Collect() const;  // none without GPUs

 private:
  mutable Mutex mutex_;
  std::function<std::vector<GpuMemory>()> ask_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class GpuSensorMetrics {
 public:
  void Ask(std::unique_ptr<GpuSensors> sensors);
  // What the sensors tell, by Triton's names as well if `triton`; none without sensors.
  std::vector<prometheus::MetricFamily> Collect(bool triton) const;

 private:
  mutable Mutex mutex_;
  std::unique_ptr<GpuSensors> sensors_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class ClientMetrics {
 public:
  void Ask(std::function<ClientLoad()> ask);
  std::vector<prometheus::MetricFamily> Collect() const;  // none before Ask

 private:
  mutable Mutex mutex_;
  std::function<ClientLoad()> ask_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class SampledMetrics {
 public:
  void Ask(std::function<SampledCounts()> ask);
  std::vector<prometheus::MetricFamily> Collect() const;  // none before Ask

 private:
  mutable Mutex mutex_;
  std::function<SampledCounts()> ask_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_SCRAPED_METRICS_H_
