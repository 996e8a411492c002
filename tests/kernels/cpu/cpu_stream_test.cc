#include "kernels/cpu/cpu_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace swizzle::cpu {
namespace {

class CpuStreamTest : public testing::TestWithParam<int> {
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

TEST_P(CpuStreamTest, RangesCoverAllItemsInOrder) {
  for (const int64_t items : {0, 1, 2, 5, 7, 100}) {
    std::vector<int> covered(items);
    std::vector<std::atomic<int>> slots(GetParam());
    stream_.ParallelRanges(items, [&](int64_t slot, int64_t begin, int64_t end) {
      EXPECT_LT(begin, end);
      ++slots[slot];
      for (int64_t i = begin; i < end; ++i) ++covered[i];
    });
    EXPECT_EQ(covered, std::vector<int>(items, 1));
    for (const auto& uses : slots) EXPECT_LE(uses, 1);
  }
}

TEST_P(CpuStreamTest, SynchronizeMayBeRepeated) {
  EXPECT_TRUE(stream_.Synchronize().ok());
  stream_.ParallelFor(10, [](int64_t) {});
  EXPECT_TRUE(stream_.Synchronize().ok());
  EXPECT_TRUE(stream_.Synchronize().ok());
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuStreamTest, testing::Values(1, 2, 3));

TEST(CpuStreamOfOneThreadTest, StaysOnTheCaller) {
  CpuStream stream(1);
  const auto caller = std::this_thread::get_id();
  stream.ParallelFor(100, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

}  // namespace
}  // namespace swizzle::cpu
