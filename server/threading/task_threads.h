// A few threads that run tasks in the order in which they came: for work that is too long for a thread that others
// wait for. Thread-safe.
#ifndef SWIZZLE_SERVER_THREADING_TASK_THREADS_H_
#define SWIZZLE_SERVER_THREADING_TASK_THREADS_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/base/mutex.h"

namespace swizzle {

class TaskThreads {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // As many, or as many as the system lets start; std::system_error if that is none.
  explicit TaskThreads(int threads);
  ~TaskThreads();  // runs what was added before

  // Does not wait. Whoever adds bounds how much there is.
  void Add(Task task);

 private:
  void Run();

  Mutex mutex_;
  CondVar added_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_THREADING_TASK_THREADS_H_
