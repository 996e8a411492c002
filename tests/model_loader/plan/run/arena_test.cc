#include "model_loader/plan/run/arena.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/base/layout.h"

namespace swizzle {
namespace {

bool Disjoint(size_t offset_a, size_t bytes_a, size_t offset_b, size_t bytes_b) {
  return offset_a + bytes_a <= offset_b || offset_b + bytes_b <= offset_a;
}

TEST(ArenaTest, NoBuffersNeedNoMemory) { EXPECT_EQ(PlaceBuffers({}).bytes, 0u); }

TEST(ArenaTest, BuffersInTurnShareMemory) {
  const std::vector<Lifetime> lifetimes = {{640, 0, 1}, {640, 2, 3}, {640, 4, 5}};
  EXPECT_EQ(PlaceBuffers(lifetimes).bytes, 640u);
}

TEST(ArenaTest, AChainAlternatesBetweenTwoPlaces) {
  const std::vector<Lifetime> lifetimes = {{128, 0, 1}, {256, 1, 2}, {128, 2, 3}, {256, 3, 4}};
  EXPECT_EQ(PlaceBuffers(lifetimes).bytes, 256u + 128u);
}

TEST(ArenaTest, FillsTheLowestGapThatFits) {
  // The two large ones lie at 0 and 1024; the small one outlives the first and takes its place's start.
  const std::vector<Lifetime> lifetimes = {{1024, 0, 1}, {512, 0, 3}, {256, 2, 3}};
  const ArenaLayout layout = PlaceBuffers(lifetimes);
  EXPECT_EQ(layout.offsets, (std::vector<size_t>{0, 1024, 0}));
  EXPECT_EQ(layout.bytes, 1536u);
}

std::vector<Lifetime> RandomLifetimes(std::mt19937& random) {
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 40; ++i) {
    const int first = static_cast<int>(random() % 30);
    lifetimes.push_back({random() % 5000, first, first + static_cast<int>(random() % 6)});
  }
  return lifetimes;
}

void ExpectApart(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
  for (size_t a = 0; a < lifetimes.size(); ++a) {
    EXPECT_EQ(layout.offsets[a] % kSlotAlignment, 0u);
    EXPECT_LE(layout.offsets[a] + lifetimes[a].bytes, layout.bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together = lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
      if (together) {
        EXPECT_TRUE(Disjoint(layout.offsets[a], lifetimes[a].bytes, layout.offsets[b], lifetimes[b].bytes));
      }
    }
  }
}

TEST(ArenaTest, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Lifetime> lifetimes = RandomLifetimes(random);
    const ArenaLayout packed = PlaceBuffers(lifetimes), halves = PlaceBuffers(lifetimes, ArenaOrder::kHalves);
    ExpectApart(lifetimes, packed);
    ExpectApart(lifetimes, halves);
    EXPECT_LE(halves.bytes, packed.bytes + packed.bytes / 8);
  }
}

TEST(ArenaTest, HalvesOfAChainLieOnTheSameSides) {
  const std::vector<Lifetime> lifetimes = {{4096, 0, 1}, {2048, 1, 2}, {1024, 2, 3}, {1536, 3, 4}};
  const ArenaLayout layout = PlaceBuffers(lifetimes, ArenaOrder::kHalves);
  const auto middle = [&](size_t i) { return layout.offsets[i] + lifetimes[i].bytes / 2; };
  EXPECT_EQ(middle(0), middle(2));
  EXPECT_EQ(middle(1), middle(3));
  EXPECT_EQ(layout.bytes, 4096u + 2048u) << "no more than packed";
}

TEST(ArenaTest, HalvesThatTakeMuchMoreMemoryArePacked) {
  // Beside one that lives on, small ones fit behind each other, but not around one middle.
  const std::vector<Lifetime> lifetimes = {{4096, 0, 0}, {1024, 1, 9}, {1024, 1, 9}, {1024, 1, 9}, {1024, 1, 9}};
  EXPECT_EQ(PlaceBuffers(lifetimes, ArenaOrder::kHalves).bytes, 4096u);
}

}  // namespace
}  // namespace swizzle
