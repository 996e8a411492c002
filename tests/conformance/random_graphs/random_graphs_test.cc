#include "tests/conformance/random_graphs/random_graphs.h"

#include <gtest/gtest.h>

namespace swizzle::random_graphs {
namespace {

constexpr uint64_t kFirstSeed = 1, kLastSeed = 250;

// The shares hold that what is drawn reaches what it is to compare.
TEST(RandomGraphsTest, EveryWayOfRunningThemAgrees) {
  RandomGraphs graphs;
  for (uint64_t seed = kFirstSeed; seed <= kLastSeed; ++seed) graphs.Try(seed, absl::Seconds(20));
  for (const Finding& finding : graphs.findings()) ADD_FAILURE() << finding.Text();
  const Counts& counts = graphs.counts();
  EXPECT_EQ(counts.invalid, 0);
  EXPECT_GE(counts.independent * 100, counts.graphs * 40) << counts.Text();
  EXPECT_GE(counts.regions * 100, counts.graphs * 60) << counts.Text();
  EXPECT_GE(counts.regions_independent * 100, counts.graphs * 30) << counts.Text();
  EXPECT_GE(counts.device * 100, counts.graphs * 50) << counts.Text();
  EXPECT_GE(counts.operators.size(), 80u) << counts.Text();
}

TEST(RandomGraphsTest, ASeedDrawsTheSameGraphEachTime) {
  Comparer comparer;
  const Drawing once = Drawer(7, comparer.stream()).Draw(), again = Drawer(7, comparer.stream()).Draw();
  EXPECT_EQ(once.graph.Text(), again.graph.Text());
  EXPECT_EQ(once.graph.Bytes(), again.graph.Bytes());
}

}  // namespace
}  // namespace swizzle::random_graphs
