// The running totals behind ModelStatistics. Thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_STATISTICS_H_
#define SWIZZLE_SERVER_TELEMETRY_STATISTICS_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/model/model.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

class StatisticsRecorder {
 public:
  void AddRequest(StatusCode code, absl::Duration duration);
  void AddQueued(absl::Duration queue);
  void AddCacheLookup(CacheLookup found, absl::Duration duration);
  void AddBatch(int64_t requests, int64_t rows, const BatchTimes& times, absl::Time ended);
  ModelStatisticsTotals Totals() const;

 private:
  mutable Mutex mutex_;
  ModelStatisticsTotals totals_ ABSL_GUARDED_BY(mutex_);                                 // but for `batches`
  std::map<int64_t, ModelStatisticsTotals::BatchSize> batches_ ABSL_GUARDED_BY(mutex_);  // by rows
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_STATISTICS_H_
