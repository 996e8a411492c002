// The blocks of a launch stay within what devices take, whatever a layer's extents are. Needs no GPU.
#include "kernels/cuda/runtime/launch_grid.h"

#include <gtest/gtest.h>

namespace swizzle::cuda {
namespace {

TEST(LaunchGridTest, HasABlockForAllThatFits) {
  const LaunchGrid grid(2'000'000'000, 65535, 3);
  EXPECT_EQ(grid.x, 2'000'000'000u);
  EXPECT_EQ(grid.y, 65535u);
  EXPECT_EQ(grid.z, 3u);
}

// A classifier of 250,000 channels has that many rows, and a batch of small images as many planes.
TEST(LaunchGridTest, FoldsWhatExceedsTheLimitsOfYAndZ) {
  const LaunchGrid grid(49, 250'000, 70'000);
  EXPECT_EQ(grid.x, 49u);
  EXPECT_EQ(grid.y, 65535u);
  EXPECT_EQ(grid.z, 65535u);
}

// Not modulo 2^32, which would silently leave most of the work undone.
TEST(LaunchGridTest, TooManyBlocksAcrossFailToLaunch) {
  EXPECT_EQ(LaunchGrid((int64_t{1} << 32) + 5).x, 1u << 31);
  EXPECT_EQ(LaunchGrid::OfThreads(int64_t{1} << 40, 128).x, 1u << 31);
}

TEST(LaunchGridTest, RoundsThreadsUpToBlocks) {
  EXPECT_EQ(LaunchGrid::OfThreads(1, 128).x, 1u);
  EXPECT_EQ(LaunchGrid::OfThreads(128, 128).x, 1u);
  EXPECT_EQ(LaunchGrid::OfThreads(129, 128).x, 2u);
  EXPECT_EQ(LaunchGrid::OfThreads(int64_t{250'000} * 4096, 256).x, 4'000'000u);
}

TEST(LaunchGridTest, LoopsFillADeviceAndNoMore) {
  EXPECT_EQ(LaunchGrid::OfLoops(1000, 256, 132).x, 4u);
  EXPECT_EQ(LaunchGrid::OfLoops(int64_t{1} << 40, 256, 132).x, 16u * 132);
}

}  // namespace
}  // namespace swizzle::cuda
