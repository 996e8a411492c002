// How many events of a kind may be logged in a second: what clients cause as often as they like, such as handshakes
// that fail, is else the disk's end. Header only. Thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_
#define SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_

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

  Answer Ask(Instant now) {
    const MutexLock lock(mutex_);
    if (now >= second_ + absl::Seconds(1)) {
      second_ = now;
      logged_ = 0;
    }
    if (logged_ == a_second_) {
      ++left_out_;
      return {};
    }
    ++logged_;
    return {true, std::exchange(left_out_, 0)};
  }

 private:
  const int a_second_;
  Mutex mutex_;
  Instant second_ ABSL_GUARDED_BY(mutex_);
  int logged_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_EVENT_BUDGET_H_
