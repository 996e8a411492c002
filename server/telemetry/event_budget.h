// How many events of a kind may be logged in a second: what clients cause as often as they like, such as handshakes
// that fail, or requests that are logged, is else the disk's end. Header only. Thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_
#define SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"

namespace swizzle {

class EventBudget {
 public:
  explicit EventBudget(int a_second) : a_second_(a_second) {}

  struct Answer {
    bool may_log = false;
    int64_t left_out = 0;  // events before this one that were not logged, and are not told of yet
  };

  // A token bucket: what is not used is kept, for up to a second.
  Answer Ask(Instant now) {
    const MutexLock lock(mutex_);
    const double gained = absl::ToDoubleSeconds(std::max(now - filled_, absl::ZeroDuration())) * a_second_;
    tokens_ = std::min<double>(tokens_ + gained, a_second_);
    filled_ = std::max(now, filled_);
    if (tokens_ < 1.0) {
      ++left_out_;
      return {};
    }
    tokens_ -= 1.0;
    return {true, std::exchange(left_out_, 0)};
  }

 private:
  const int a_second_;
  Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_) = a_second_;
  Instant filled_ ABSL_GUARDED_BY(mutex_);
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_
