// What a call throws ends neither the thread that makes it nor the process.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "server/threading/clock.h"
#include "server/threading/periodic.h"
#include "server/threading/task_threads.h"

namespace swizzle {
namespace {

TEST(PeriodicTest, GoesOnAfterACallThatThrows) {
  std::atomic<int> calls = 0;
  const Periodic periodic(
      absl::Milliseconds(1),
      [&] {
        if (++calls == 1) throw std::bad_alloc();
      },
      Clock::Real());
  while (calls < 3) std::this_thread::yield();
}

TEST(TaskThreadsTest, GoOnAfterATaskThatThrows) {
  std::atomic<bool> done = false;
  TaskThreads threads(1);
  threads.Add([] { throw std::bad_alloc(); });
  threads.Add([&] { done = true; });
  while (!done) std::this_thread::yield();
}

}  // namespace
}  // namespace swizzle
