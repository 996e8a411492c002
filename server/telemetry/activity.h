// Whether requests are there: what wants the machine for itself looks here. Thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_ACTIVITY_H_
#define SWIZZLE_SERVER_TELEMETRY_ACTIVITY_H_

#include <atomic>
#include <cstdint>

namespace swizzle {

class Activity {
 public:
  // So many requests, of any model, were queued (1) or ended (-1).
  void Add(int64_t delta) {
    inflight_.fetch_add(delta, std::memory_order_relaxed);
    if (delta > 0) begun_.fetch_add(delta, std::memory_order_relaxed);
  }

  int64_t inflight() const { return inflight_.load(std::memory_order_relaxed); }  // queued or running
  int64_t begun() const { return begun_.load(std::memory_order_relaxed); }        // ever

 private:
  std::atomic<int64_t> inflight_ = 0, begun_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_ACTIVITY_H_
