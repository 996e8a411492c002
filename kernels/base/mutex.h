// A mutex and a condition variable with thread-safety annotations.
//
// Why not absl::Mutex: distributions ship Abseil uninstrumented, so ThreadSanitizer does not see its locks and reports
// everything they guard as a race. These are std:: ones underneath, which it knows.
#ifndef SWIZZLE_KERNELS_BASE_MUTEX_H_
#define SWIZZLE_KERNELS_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "kernels/base/instant.h"

namespace swizzle {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may end early: the caller looks at its condition again.
class CondVar {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  void WaitUntil(Mutex& mutex, Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (deadline == Instant::InfiniteFuture()) return Wait(mutex);
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait_until(lock, deadline.ToChrono());
    lock.release();
  }
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_MUTEX_H_
