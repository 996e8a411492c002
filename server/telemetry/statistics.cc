#include "server/telemetry/statistics.h"

namespace swizzle {
namespace {

void Add(ModelStatisticsTotals::Stage& stage, int64_t count, absl::Duration each) {
  stage.count += count;
  stage.total += each * count;
}

}  // namespace

void StatisticsRecorder::AddRequest(StatusCode code, absl::Duration duration) {
  MutexLock lock(mutex_);
  Add(code == StatusCode::kOk ? totals_.success : totals_.fail, 1, duration);
}

void StatisticsRecorder::AddQueued(absl::Duration queue) {
  MutexLock lock(mutex_);
  Add(totals_.queue, 1, queue);
}

void StatisticsRecorder::AddCacheLookup(CacheLookup found, absl::Duration duration) {
  MutexLock lock(mutex_);
  Add(found == CacheLookup::kHit ? totals_.cache_hit : totals_.cache_miss, 1, duration);
}

void StatisticsRecorder::AddBatch(int64_t requests, int64_t rows, const BatchTimes& times, absl::Time ended) {
  MutexLock lock(mutex_);
  totals_.last_inference_ms = absl::ToUnixMillis(ended);
  totals_.inference_count += rows;
  totals_.execution_count += 1;
  Add(totals_.input, requests, times.input);
  Add(totals_.compute, requests, times.compute);
  Add(totals_.output, requests, times.output);

  ModelStatisticsTotals::BatchSize& batch = batches_[rows];
  batch.rows = rows;
  batch.count += 1;
  batch.input += times.input;
  batch.compute += times.compute;
  batch.output += times.output;
}

ModelStatisticsTotals StatisticsRecorder::Totals() const {
  MutexLock lock(mutex_);
  ModelStatisticsTotals totals = totals_;
  for (const auto& [rows, batch] : batches_) totals.batches.push_back(batch);
  return totals;
}

}  // namespace swizzle
