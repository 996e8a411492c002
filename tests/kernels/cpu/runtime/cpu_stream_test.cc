#include "kernels/cpu/runtime/cpu_stream.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/measure/loop_clock.h"
#include "tests/support/process_limits.h"

namespace swizzle::cpu {
namespace {

class CpuStreamTest : public ::testing::TestWithParam<int> {
 protected:
  CpuStream stream_{GetParam()};
};

TEST_P(CpuStreamTest, EveryTaskRunsOnce) {
  EXPECT_EQ(stream_.threads(), GetParam());
  for (const int64_t tasks : {0, 1, 2, 3, 64, 1000}) {
    std::vector<std::atomic<int>> runs(tasks);
    stream_.ParallelFor(tasks, [&](int64_t i) { ++runs[i]; });
    for (int64_t i = 0; i < tasks; ++i) ASSERT_EQ(runs[i], 1) << i << " of " << tasks;
  }
}

// By processor time, so that what else the machine does is no part of it.
TEST_P(CpuStreamTest, WorkIsEachThreadsPartOfLoops) {
  const auto work = [](absl::Duration time) {
    const absl::Duration end = ThreadTime() + time;
    while (ThreadTime() < end) {
    }
  };
  constexpr int kTasks = 8;
  LoopClock& clock = LoopClock::OfThisThread();
  clock.Start();
  EXPECT_TRUE(clock.on());
  work(absl::Milliseconds(1));
  stream_.ParallelFor(kTasks, [&](int64_t) { work(absl::Milliseconds(2)); });
  const absl::Duration time = clock.Stop();
  EXPECT_FALSE(clock.on());
  const absl::Duration least = absl::Milliseconds(1 + 2 * CeilDiv(kTasks, GetParam()));
  EXPECT_GE(time, least);
  EXPECT_LT(time, least * 1.5);
}

// In a process of its own, which has no address space left for threads.
TEST(NewStreamTest, FailsWhereThereAreNoThreads) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  const auto start = [] {
    const auto backend = NewCpuBackend();
    LimitThreads();
    std::fprintf(stderr, "%s\n", backend->NewStream(257).status().ToString().c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(start(), ::testing::ExitedWithCode(0), "RESOURCE_EXHAUSTED: this process may not start 256 threads more");
}

TEST_P(CpuStreamTest, SynchronizeReturnsTheFirstErrorOfTheWorkOnce) {
  EXPECT_TRUE(stream_.Synchronize().ok());
  stream_.Keep(absl::OkStatus());
  EXPECT_TRUE(stream_.Synchronize().ok());
  stream_.ParallelFor(64, [&](int64_t i) {
    if (i % 2 == 0) stream_.Keep(MakeError(StatusCode::kResourceExhausted, "no memory"));
  });
  stream_.Keep(MakeError(StatusCode::kInternal, "and then"));
  EXPECT_EQ(stream_.Synchronize(), MakeError(StatusCode::kResourceExhausted, "no memory"));
  EXPECT_TRUE(stream_.Synchronize().ok());
}

TEST_P(CpuStreamTest, WorkThatFailedHasNoTime) {
  const auto fail = [&] { stream_.Keep(MakeError(StatusCode::kInternal, "broken")); };
  EXPECT_EQ(stream_.Time(fail, {}).status().message(), "broken");
  EXPECT_TRUE(stream_.Time([] {}, {}).ok());
}

TEST_P(CpuStreamTest, TheCallerAloneRunsSerially) {
  const auto caller = std::this_thread::get_id();
  for (const int64_t tasks : {0, 1, 5, 64}) {
    stream_.RunSerially(true);
    std::vector<int64_t> order;
    stream_.ParallelFor(tasks, [&](int64_t i) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      order.push_back(i);
    });
    ASSERT_EQ(static_cast<int64_t>(order.size()), tasks);
    for (int64_t i = 0; i < tasks; ++i) EXPECT_EQ(order[i], i);
    stream_.ParallelRanges(tasks, [&](int64_t slot, int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(slot, 0);
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, tasks);
    });
    stream_.RunSerially(false);
    std::atomic<int64_t> runs = 0;
    stream_.ParallelFor(tasks, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, tasks);
  }
}

// Plain, unsynchronised writes: the pool itself must order them before ParallelFor returns (checked under TSan).
TEST_P(CpuStreamTest, WritesAreVisibleAfterwards) {
  std::vector<int> values(1000);
  for (int round = 1; round <= 20; ++round) {
    stream_.ParallelFor(1000, [&](int64_t i) { values[i] += 1; });
    for (int value : values) ASSERT_EQ(value, round);
    const bool rest = round % 10 == 0;
    if (rest) {
      EXPECT_TRUE(stream_.Synchronize().ok());
    }
  }
}

TEST_P(CpuStreamTest, CopiesAllBytesAndNoOther) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64} << 10, (size_t{64} << 10) + 1, size_t{1000001}}) {
    std::vector<uint8_t> from(bytes), to(bytes + 1, 0xee);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<uint8_t>(i * 7 + i / 251);
    stream_.Copy(to.data(), from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
    EXPECT_EQ(to[bytes], 0xee) << bytes;
  }
}

// Each as an operand and as a result. Two tasks that wait for each other run on two threads.
TEST_P(CpuStreamTest, DenormalsAreZeroWithinTasksAlone) {
  volatile const float least = std::numeric_limits<float>::min(), below = least / 2;
  ASSERT_GT(below, 0.0f);
  for (const int tasks : {1, GetParam()}) {
    std::atomic<int> begun = 0, zeros = 0;
    stream_.ParallelFor(tasks, [&](int64_t) {
      ++begun;
      while (begun < tasks) std::this_thread::yield();
      volatile const float halved = least * 0.5f, doubled = below * 2.0f;
      zeros += (halved == 0.0f) + (doubled == 0.0f);
    });
    EXPECT_EQ(zeros, 2 * tasks);
    EXPECT_GT(least * 0.5f, 0.0f);
  }
}

// Each thread's own mask, once all have begun, sorted. By another thread than the test's, whose mask tells the
// process's. It may keep to a processor.
std::vector<std::vector<int>> MasksOfThreads(CpuStream& stream, std::optional<int> caller = std::nullopt) {
  std::vector<std::vector<int>> masks(stream.threads());
  std::thread([&] {
    if (caller) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(*caller, &set);
      ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    }
    const std::vector<int> before = AffinityMaskOfThisThread();
    std::atomic<int> begun = 0;
    stream.ParallelFor(stream.threads(), [&](int64_t i) {
      ++begun;
      while (begun < stream.threads()) std::this_thread::yield();
      masks[i] = AffinityMaskOfThisThread();
    });
    EXPECT_TRUE(stream.Synchronize().ok());
    EXPECT_EQ(AffinityMaskOfThisThread(), before);  // free again
  }).join();
  std::ranges::sort(masks);
  return masks;
}

TEST_P(CpuStreamTest, PinsEachThreadToAProcessorOfItsOwn) {
  const std::vector<int> cpus = AffinityMask();
  constexpr int kExecutor = 1;
  stream_.PinThreads(kExecutor);
  std::vector<std::vector<int>> expected;
  for (int i = 0; i < GetParam(); ++i) expected.push_back({cpus[(kExecutor * GetParam() + i) % cpus.size()]});
  std::ranges::sort(expected);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(MasksOfThreads(stream_), expected);
  }
  EXPECT_EQ(AffinityMask(), cpus);
}

// By a caller that is on each processor in turn, at times twice, as free ones may be.
TEST_P(CpuStreamTest, FreeWorkersAreKeptOffTheCallersProcessor) {
  const std::vector<int> cpus = AffinityMask();
  for (const int cpu : {cpus.front(), cpus.back(), cpus.back(), cpus.front()}) {
    std::vector<int> others = cpus;
    if (cpus.size() >= static_cast<size_t>(GetParam())) std::erase(others, cpu);
    std::vector<std::vector<int>> expected(GetParam() - 1, others);
    expected.push_back({cpu});
    std::ranges::sort(expected);
    EXPECT_EQ(MasksOfThreads(stream_, cpu), expected);
  }
}

// A slot stands for a part of the workspace: two tasks with one may not overlap.
class SlotsInUse {
 public:
  explicit SlotsInUse(int slots) : in_use_(slots) {}

  void Enter(int64_t slot) {
    ASSERT_LT(slot, static_cast<int64_t>(in_use_.size()));
    EXPECT_EQ(in_use_[slot]++, 0) << "slot " << slot;
  }
  void Leave(int64_t slot) { --in_use_[slot]; }

 private:
  std::vector<std::atomic<int>> in_use_;
};

TEST_P(CpuStreamTest, RangesCoverAllItems) {
  SlotsInUse slots(GetParam());
  for (const int64_t items : {0, 1, 2, 5, 7, 100}) {
    for (const int64_t grain : {1, 3, 200}) {
      std::vector<int> covered(items);
      stream_.ParallelRanges(
          items,
          [&](int64_t slot, int64_t begin, int64_t end) {
            slots.Enter(slot);
            EXPECT_LT(begin, end);
            EXPECT_EQ(begin % grain, 0);
            for (int64_t i = begin; i < end; ++i) ++covered[i];
            slots.Leave(slot);
          },
          grain);
      EXPECT_EQ(covered, std::vector<int>(items, 1)) << items << " by " << grain;
    }
  }
}

// The first range ends when all others have: with a fixed share for each thread, that would be never.
TEST_P(CpuStreamTest, ThreadsTakeRangesFromASlowOne) {
  if (GetParam() == 1) return;
  constexpr int64_t kItems = 1000;
  std::atomic<int64_t> done = 0;
  stream_.ParallelRanges(kItems, [&](int64_t, int64_t begin, int64_t end) {
    while (begin == 0 && done < kItems - end) std::this_thread::yield();
    done += end - begin;
  });
  EXPECT_EQ(done, kItems);
}

TEST_P(CpuStreamTest, SynchronizeMayBeRepeated) {
  EXPECT_TRUE(stream_.Synchronize().ok());
  stream_.ParallelFor(10, [](int64_t) {});
  EXPECT_TRUE(stream_.Synchronize().ok());
  EXPECT_TRUE(stream_.Synchronize().ok());
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuStreamTest, ::testing::Values(1, 2, 3));

TEST(CpuStreamOfOneThreadTest, StaysOnTheCaller) {
  CpuStream stream(1);
  const auto caller = std::this_thread::get_id();
  stream.ParallelFor(100, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

}  // namespace
}  // namespace swizzle::cpu
