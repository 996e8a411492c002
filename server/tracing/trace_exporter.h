// Sends traces to a collector, by OTLP over gRPC (--trace-endpoint), at no cost to requests.
//
// The collector may be slow, gone or hostile. What waits for it is bounded, and what finds no room is dropped and
// counted; one thread sends, with a deadline for each call, a pause that grows after each failure, and a bound on what
// is read of an answer. Nothing that a collector says reaches the log or a client.
#ifndef SWIZZLE_SERVER_TRACING_TRACE_EXPORTER_H_
#define SWIZZLE_SERVER_TRACING_TRACE_EXPORTER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/telemetry/labels.h"
#include "server/threading/clock.h"
#include "server/tracing/sampled_request.h"

namespace swizzle {

struct ExportLimits {
  size_t most_waiting = 2048;                     // requests
  size_t most_in_call = 256;                      // of them
  absl::Duration interval = absl::Seconds(1);     // the first of a call waits for others so long
  absl::Duration call_time = absl::Seconds(5);    // for one call
  absl::Duration first_pause = absl::Seconds(1);  // after a failure; twice as long after each further one
  absl::Duration most_pause = absl::Seconds(30);  // at most
  int most_attempts = 5;                          // of sending the same again
};

// Thread-safe.
class TraceExporter {
 public:
  // `address` is HOST:PORT.
  explicit TraceExporter(const std::string& address, const ExportLimits& limits = {});
  ~TraceExporter();  // stops, with no patience

  // Whether what is added now would have room.
  bool has_room() const { return waiting_.load(std::memory_order_relaxed) < limits_.most_waiting; }
  // Counts a request, and all its spans, that found no room.
  void Drop(int64_t spans) { Count(SpanOutcome::kQueueFull, spans); }
  // Never waits for the collector.
  void Add(std::shared_ptr<const SampledRequest> request);

  // Sends what waits, for so long at most, and then nothing more.
  void Stop(absl::Duration patience);

  std::array<int64_t, kLabelValues<SpanOutcome>.size()> spans() const;  // by SpanOutcome
  int64_t failures() const { return failures_; }                        // calls

 private:
  struct Connection;
  using Requests = std::vector<std::shared_ptr<const SampledRequest>>;

  void Run();
  bool Await(Requests& batch);
  Instant WakeTime(const Requests& batch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(Requests& batch);
  StatusCode Call(const Requests& batch, int64_t spans);
  void PauseAfter(StatusCode failure, Requests& batch, int64_t spans);
  void Count(SpanOutcome outcome, int64_t spans) {
    spans_[static_cast<size_t>(outcome)].fetch_add(spans, std::memory_order_relaxed);
  }

  const ExportLimits limits_;
  Clock& clock_ = Clock::Real();
  const std::unique_ptr<Connection> connection_;
  std::array<std::atomic<int64_t>, kLabelValues<SpanOutcome>.size()> spans_ = {};
  std::atomic<int64_t> failures_ = 0;
  std::atomic<size_t> waiting_ = 0;  // queue_'s size

  // The thread's.
  int attempts_ = 0;  // of sending its batch
  absl::Duration pause_;
  bool failing_ = false;

  Mutex mutex_;
  CondVar changed_;  // there is more to send, or it is to stop
  CondVar ended_;    // the thread has
  std::deque<std::shared_ptr<const SampledRequest>> queue_ ABSL_GUARDED_BY(mutex_);
  Instant first_queued_ ABSL_GUARDED_BY(mutex_);                        // of queue_
  Instant retry_at_ ABSL_GUARDED_BY(mutex_) = Instant::InfinitePast();  // nothing is sent before
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false, has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Instant stop_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_TRACE_EXPORTER_H_
