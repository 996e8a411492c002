// What a call throws ends neither the thread that makes it nor the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

#include "server/threading/clock.h"
#include "server/threading/periodic.h"
#include "server/threading/task_threads.h"
#include "tests/support/process_limits.h"

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

// In a process of its own.
TEST(TaskThreadsTest, AreAsManyAsThereCanBe) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  const auto start = [] {
    LimitThreads();
    {
      TaskThreads threads(257);
      threads.Add([] { std::fputs("run\n", stderr); });
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(start(), ::testing::ExitedWithCode(0), "run");
}

TEST(TaskThreadsTest, AreNotMadeWhereThereCanBeNone) {
  const NoMoreThreads none;
  EXPECT_THROW(TaskThreads(2), std::system_error);
}

}  // namespace
}  // namespace swizzle
