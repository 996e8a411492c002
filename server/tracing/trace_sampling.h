// Which requests are traced. A caller that says whether it records the trace is followed; of the other requests a share
// is traced, as long as the count of traces, where there is one, is not used up.
//
// Thread-safe. Settings may be changed while requests come.
#ifndef SWIZZLE_SERVER_TRACING_TRACE_SAMPLING_H_
#define SWIZZLE_SERVER_TRACING_TRACE_SAMPLING_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "server/tracing/trace_context.h"

namespace swizzle {

struct TraceSettings {
  bool on = true;
  double share = 0.0;  // of requests whose caller says nothing
  int64_t count = -1;  // traces still to come; -1: any number

  friend bool operator==(const TraceSettings&, const TraceSettings&) = default;
};

class TraceSampling {
 public:
  explicit TraceSampling(double share) : first_{.share = share}, share_(share) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Whether to trace a request of this context. Counts it.
  bool Samples(const std::optional<TraceContext>& parent);

  TraceSettings Current() const;
  const TraceSettings& first() const { return first_; }
  void Change(const TraceSettings& settings);

 private:
  const TraceSettings first_;
  std::atomic<bool> on_ = true;
  std::atomic<double> share_;
  std::atomic<int64_t> count_ = -1;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_TRACE_SAMPLING_H_
