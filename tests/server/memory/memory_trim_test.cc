#include "server/memory/memory_trim.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

#include "server/memory/memory_limit.h"

namespace swizzle {
namespace {

constexpr int64_t kTrimMiB = 1 << 20;

class MemoryTrimTest : public ::testing::Test {
 protected:
  // Looks so many times; returns the trims so far.
  int64_t Look(int times = 1) {
    for (int i = 0; i < times; ++i) trim_.Look();
    return trim_.trims();
  }

  int64_t inflight_ = 0;
  int64_t resident_ = 100 * kTrimMiB, kept_ = 100 * kTrimMiB;  // kept: what a trim leaves
  MemoryTrim trim_{[this] { return inflight_; }, [this] { return resident_; }, [this] { resident_ = kept_; }};
};

TEST_F(MemoryTrimTest, GivesBackWhatABurstLeft) {
  EXPECT_EQ(Look(), 0);
  inflight_ = 500 * kTrimMiB;
  resident_ = 700 * kTrimMiB;
  EXPECT_EQ(Look(5), 0) << "requests hold it";
  inflight_ = 0;
  EXPECT_EQ(Look(3), 1);
  EXPECT_EQ(resident_, 100 * kTrimMiB);
  EXPECT_EQ(Look(100), 1);
}

TEST_F(MemoryTrimTest, LeavesALittleAlone) {
  resident_ = 150 * kTrimMiB;
  EXPECT_EQ(Look(100), 0);
}

// Else what is freed here and there adds up over hours.
TEST_F(MemoryTrimTest, GivesALittleBackOnceAMinute) {
  resident_ = 105 * kTrimMiB;
  EXPECT_EQ(Look(239), 0);
  EXPECT_EQ(Look(), 1);
  EXPECT_EQ(resident_, 100 * kTrimMiB);
  EXPECT_EQ(Look(1000), 1) << "there is nothing to give back";
  inflight_ = 600 * kTrimMiB;
  resident_ = 700 * kTrimMiB;
  EXPECT_EQ(Look(1000), 1) << "requests hold it";
}

TEST_F(MemoryTrimTest, WhatStaysIsNotTriedAgain) {
  kept_ = 400 * kTrimMiB;  // as after another model was loaded
  resident_ = 500 * kTrimMiB;
  EXPECT_EQ(Look(100), 1);
}

// Steady requests take the same memory again: trimming it every second would only make page faults.
TEST_F(MemoryTrimTest, WaitsLongerWhereItDoesNotLast) {
  for (int second = 0; second < 100; ++second) {
    resident_ = 300 * kTrimMiB;
    Look();
  }
  EXPECT_LE(Look(), 8);
}

// What glibc does, in processes that begin anew: this one may have more arenas.
class FreedMemoryTest : public ::testing::Test {
 protected:
  static constexpr int kThreads = 4;
  static constexpr int64_t kOfThread = 12 * kTrimMiB;  // of two, less than glibc gives back by itself

  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
    GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  // As the server does at its start.
  static void SetUpProcess() {
    ShareArenas(2);
    KeepFreedMemory();
  }

  // Threads take memory at the same time, each of its arena, and free it.
  static void TakeAndFree(int64_t of_thread = kOfThread) {
    std::barrier<> taken(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        std::vector<std::vector<char>> pieces(of_thread / kTrimMiB);
        for (auto& piece : pieces) piece.assign(kTrimMiB, 1);
        taken.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Ends the process, which says how much more it has than before.
  [[noreturn]] static void End(int64_t before, int64_t least, int64_t most) {
    const int64_t more = ResidentBytes() - before;
    std::cerr << "there are " << more / kTrimMiB << " MiB more" << std::endl;
    std::_Exit(more >= least && more <= most ? 0 : 1);
  }
};

TEST_F(FreedMemoryTest, IsKeptWhileThatIsAskedForAndThenGivenBackByAllArenas) {
  const auto keep = [] {
    SetUpProcess();
    const int64_t before = ResidentBytes();
    const TrimLater later;
    TakeAndFree(2 * kOfThread);  // more than it would keep
    End(before, kThreads * kOfThread, INT64_MAX);
  };
  EXPECT_EXIT(keep(), ::testing::ExitedWithCode(0), "");
  const auto end = [] {
    SetUpProcess();
    const int64_t before = ResidentBytes();
    std::optional<TrimLater> first(std::in_place), second(std::in_place);
    first.reset();
    TakeAndFree();
    second.reset();
    End(before, 0, 4 * kTrimMiB);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace swizzle
