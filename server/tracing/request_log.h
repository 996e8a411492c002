// The request log (--request-log-rate): a line of JSON for each sampled request, on standard error.
//
// A line costs a request nothing that it waits for: a thread of this writes it. No more than kMostPerSecond are
// written, and no more than kMostWaiting wait for a reader of standard error that is slow; what is left out is counted.
#ifndef SWIZZLE_SERVER_TRACING_REQUEST_LOG_H_
#define SWIZZLE_SERVER_TRACING_REQUEST_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "server/telemetry/event_budget.h"
#include "server/telemetry/logging.h"
#include "server/threading/clock.h"
#include "server/threading/task_threads.h"
#include "server/tracing/sampled_request.h"

namespace swizzle {

// Thread-safe. Its end waits for what is to be written.
class RequestLog {
 public:
  static constexpr int kMostPerSecond = 100, kMostWaiting = 1000;
  using Sink = std::function<void(std::string_view message, std::span<const LogField> fields)>;

  // `rate` is the share of requests that are logged; `clock` outlives this. `sink` is where lines go.
  RequestLog(double rate, Clock& clock, Sink sink = LogRecord);

  // Whether a request that begins now is to be logged.
  bool Wants();
  void Write(std::shared_ptr<const SampledRequest> request);

  int64_t written() const { return written_; }
  int64_t dropped() const { return dropped_; }

 private:
  const double rate_;
  Clock& clock_;
  const Sink sink_;
  EventBudget budget_{kMostPerSecond};
  std::atomic<int64_t> waiting_ = 0, written_ = 0, dropped_ = 0;
  TaskThreads thread_{1};  // last: it uses all of the above
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_REQUEST_LOG_H_
