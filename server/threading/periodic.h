// Calls a function again and again, on a thread of its own.
#ifndef SWIZZLE_SERVER_THREADING_PERIODIC_H_
#define SWIZZLE_SERVER_THREADING_PERIODIC_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/threading/clock.h"

namespace swizzle {

class Periodic {
 public:
  // Every `interval` by `clock`, the first time after one.
  Periodic(absl::Duration interval, std::function<void()> call, Clock& clock = Clock::Real());
  ~Periodic();  // after it the function is called no more

 private:
  void Run();

  const absl::Duration interval_;
  const std::function<void()> call_;
  Clock& clock_;
  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_THREADING_PERIODIC_H_
