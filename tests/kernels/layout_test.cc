#include "kernels/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace swizzle {
namespace {

// Position counts around every edge of units and panels, and those of common layers.
std::vector<int64_t> PositionCounts() {
  std::vector<int64_t> counts;
  for (int64_t n = 1; n <= 300; ++n) counts.push_back(n);
  counts.insert(counts.end(), {784, 1024, 3136, 12544, 50176, 100000});
  return counts;
}

TEST(PanelGridTest, PanelsTileThePositions) {
  for (const int64_t positions : PositionCounts()) {
    SCOPED_TRACE(positions);
    const PanelGrid grid(positions);
    EXPECT_EQ(grid.Begin(0), 0);
    EXPECT_EQ(grid.Begin(grid.count()), grid.padded_positions());
    EXPECT_GE(grid.padded_positions(), positions);
    EXPECT_LT(grid.padded_positions(), positions + kPositionUnit);
    for (int64_t panel = 0; panel < grid.count(); ++panel) {
      EXPECT_EQ(grid.Begin(panel), grid.padded_positions() / kPositionUnit * panel / grid.count() * kPositionUnit);
      EXPECT_EQ(grid.Begin(panel) + grid.Width(panel), grid.Begin(panel + 1));
      EXPECT_GT(grid.Width(panel), 0);
      EXPECT_LE(grid.Width(panel), kMaxPanelWidth);
      EXPECT_EQ(grid.Width(panel) % kPositionUnit, 0);
    }
  }
}

TEST(PanelGridTest, WidthsAreEvenAndPanelsAreFew) {
  for (const int64_t positions : PositionCounts()) {
    SCOPED_TRACE(positions);
    const PanelGrid grid(positions);
    int64_t narrowest = kMaxPanelWidth;
    int64_t widest = 0;
    for (int64_t panel = 0; panel < grid.count(); ++panel) {
      narrowest = std::min(narrowest, grid.Width(panel));
      widest = std::max(widest, grid.Width(panel));
    }
    EXPECT_LE(widest - narrowest, kPositionUnit);
    EXPECT_EQ(grid.count(), (grid.padded_positions() + kMaxPanelWidth - 1) / kMaxPanelWidth);
  }
}

TEST(PanelGridTest, PanelOfFindsEveryPosition) {
  for (const int64_t positions : PositionCounts()) {
    const PanelGrid grid(positions);
    for (int64_t position = 0; position < positions; ++position) {
      const int64_t panel = grid.PanelOf(position);
      ASSERT_LE(grid.Begin(panel), position) << positions;
      ASSERT_LT(position, grid.Begin(panel + 1)) << positions;
    }
  }
}

// The header's worked example.
TEST(PanelGridTest, WorkedExample) {
  EXPECT_EQ(PanelGrid(49).count(), 1);
  EXPECT_EQ(PanelGrid(49).Width(0), 64);
  const PanelGrid grid(196);
  ASSERT_EQ(grid.count(), 4);
  EXPECT_EQ(grid.Width(0), 48);
  EXPECT_EQ(grid.Width(3), 64);
  EXPECT_EQ(grid.PanelOf(50), 1);
}

TEST(LayoutTest, ElementsIncludePadding) {
  const Extent extent{2, 17, 5, 5};
  EXPECT_EQ(LayoutElements(extent, Layout::kNchw), 2 * 17 * 25);
  EXPECT_EQ(LayoutElements(extent, Layout::kPanels), 17 * 64);
  EXPECT_EQ(LayoutElements(extent, Layout::kBlocked16), 2 * 32 * 25);
}

TEST(LayoutTest, Names) {
  EXPECT_EQ(LayoutName(Layout::kNchw), "nchw");
  EXPECT_EQ(LayoutName(Layout::kPanels), "panels");
  EXPECT_EQ(LayoutName(Layout::kBlocked16), "blocked16");
}

}  // namespace
}  // namespace swizzle
