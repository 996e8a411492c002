// What is recorded for one version of one model, as children of the registry's families.
#ifndef SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_
#define SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_

#include <memory>

#include "absl/time/time.h"
#include "server/model/model.h"
#include "server/telemetry/metric_registry.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/triton_metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

// All but `spec`, `facts` and `load_time` outlive the result.
std::unique_ptr<ModelMetrics> NewModelMetrics(MetricRegistry& registry, const ModelSpec& spec, const ModelFacts& facts,
                                              absl::Duration load_time, Clock& clock, Activity& activity,
                                              TritonMetrics& triton);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_MODEL_METRICS_H_
