// Looks after devices that can be lost to this process: GPUs, after an error that sticks.
#ifndef SWIZZLE_SERVER_DEVICE_WATCH_H_
#define SWIZZLE_SERVER_DEVICE_WATCH_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/threading/clock.h"

namespace swizzle {

// Asks `health` every `interval` by `clock`, on a thread of its own, and calls `lost` with the first error, once.
class DeviceWatch {
 public:
  using Health = std::function<Status()>;
  using Lost = std::function<void(const Status&)>;

  DeviceWatch(Health health, Lost lost, Clock& clock = Clock::Real(), absl::Duration interval = absl::Seconds(1));
  ~DeviceWatch();  // after it neither is called any more

 private:
  void Watch();

  const Health health_;
  const Lost lost_;
  Clock& clock_;
  const absl::Duration interval_;
  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_DEVICE_WATCH_H_
