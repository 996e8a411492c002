#include "kernels/cpu/conv/panel_cell.h"

#include <gtest/gtest.h>

namespace swizzle::cpu {
namespace {

Problem Pointwise(int64_t size, int threads) {
  Problem problem;
  problem.op = Op::kConv;
  problem.input = problem.output = {1, 64, size, size};
  problem.threads = threads;
  return problem;
}

TEST(ThreadsPerPanelTest, FewShareAPanelWhereThereAreMany) {
  EXPECT_EQ(ThreadsPerPanel(Pointwise(56, 2)), 1);  // 49 panels
  EXPECT_EQ(ThreadsPerPanel(Pointwise(56, 16)), 1);
  EXPECT_EQ(ThreadsPerPanel(Pointwise(28, 16)), 4);  // 13 panels
}

TEST(ThreadsPerPanelTest, AllShareAPanelWhereThereAreFew) {
  EXPECT_EQ(ThreadsPerPanel(Pointwise(14, 2)), 2);  // 4 panels
  EXPECT_EQ(ThreadsPerPanel(Pointwise(7, 16)), 16);
  EXPECT_EQ(ThreadsPerPanel(Pointwise(1, 3)), 3);
  EXPECT_EQ(ThreadsPerPanel(Pointwise(1, 1)), 1);
}

TEST(WeightSlicesTest, ThreadsGetAsManyEach) {
  const CacheSizes caches{.first = 32 << 10, .second = 1 << 20};  // 256 KiB a slice
  EXPECT_EQ(WeightSlices(1, 1, caches), 1);
  EXPECT_EQ(WeightSlices(600 << 10, 1, caches), 3);
  EXPECT_EQ(WeightSlices(600 << 10, 2, caches), 4);
  EXPECT_EQ(WeightSlices(0, 3, caches), 3);
  EXPECT_EQ(WeightSlices(1500 << 10, 4, caches), 8);
}

}  // namespace
}  // namespace swizzle::cpu
