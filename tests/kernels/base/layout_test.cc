#include "kernels/base/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"
#include "kernels/reference/layout.h"

namespace swizzle {
namespace {

// Position counts around every edge of units and panels, and those of common layers.
std::vector<int64_t> PositionCounts() {
  std::vector<int64_t> counts;
  for (int64_t n = 1; n <= 300; ++n) counts.push_back(n);
  counts.insert(counts.end(),
                {495, 496, 497, 504, 505, 511, 512, 513, 575, 576, 577, 784, 1024, 3136, 12544, 50176, 100000});
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
    EXPECT_EQ(grid.count(), CeilDiv(grid.padded_positions(), kMaxPanelWidth));
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
  EXPECT_EQ(LayoutElements(extent, Layout::kRows), 17 * 64);
  EXPECT_EQ(LayoutElements(extent, Layout::kNhwc), 2 * 17 * 25);
  EXPECT_EQ(LayoutElements(extent, Layout::kFullPanels), 17 * 64);
  EXPECT_EQ(LayoutElements({2, 17, 5, 7}, Layout::kFullPanels), 17 * 128);
  EXPECT_EQ(LayoutElements(extent, Layout::kBatched), 17 * 208);
  EXPECT_EQ(LayoutElements({9, 17, 5, 5}, Layout::kBatched), 17 * 400);
}

TEST(LayoutTest, RowsStartOnUnits) {
  EXPECT_EQ(RowStride(1), 16);
  for (const int64_t positions : PositionCounts()) {
    const int64_t unit = positions < kLongRow ? kPositionUnit : kLineUnit;
    EXPECT_EQ(RowStride(positions) % unit, 0);
    EXPECT_GE(RowStride(positions), positions);
    EXPECT_LT(RowStride(positions), positions + unit);
    // Without a plane kBatched is kRows.
    EXPECT_EQ(RowStride(BatchedPositions({positions, 1})), RowStride(positions));
    EXPECT_GE(RowStride(positions + 1), RowStride(positions));
  }
}

// Where channel 3 of image 1, row 2, column 4 lies.
TEST(LayoutTest, WhereElementsLie) {
  const Extent extent{2, 17, 5, 6};
  const int64_t position = (1 * 5 + 2) * 6 + 4;
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kNchw, 3, position), ((1 * 17 + 3) * 5 + 2) * 6 + 4);
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kRows, 3, position), 3 * 64 + position);
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kNhwc, 3, position), position * 17 + 3);
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kRows, 16, position), 16 * 64 + position);
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kBatched, 3, position), 3 * 240 + (2 * 6 + 4) * 8 + 1);
  EXPECT_EQ(reference::ElementOffset(extent, Layout::kNhwc, 16, position), position * 17 + 16);
}

// Every element comes back, and what is over holds the spare value.
TEST(LayoutTest, RoundTrips) {
  const Extent extent{3, 17, 5, 3};
  std::vector<float> nchw(extent.positions() * extent.channels);
  std::iota(nchw.begin(), nchw.end(), 1.0f);
  for (const Layout layout :
       {Layout::kNchw, Layout::kPanels, Layout::kRows, Layout::kNhwc, Layout::kFullPanels, Layout::kBatched}) {
    std::vector<float> buffer(LayoutElements(extent, layout));
    reference::ToLayout(nchw, extent, layout, -1.0f, buffer);
    EXPECT_EQ(reference::FromLayout(buffer, extent, layout), nchw) << LayoutName(layout);
    EXPECT_EQ(std::count(buffer.begin(), buffer.end(), -1.0f), static_cast<int64_t>(buffer.size() - nchw.size()));
  }
}

TEST(LayoutTest, Names) {
  EXPECT_EQ(LayoutName(Layout::kNchw), "nchw");
  EXPECT_EQ(LayoutName(Layout::kPanels), "panels");
  EXPECT_EQ(LayoutName(Layout::kBlocked16), "blocked16");
  EXPECT_EQ(LayoutName(Layout::kRows), "rows");
  EXPECT_EQ(LayoutName(Layout::kNhwc), "nhwc");
  EXPECT_EQ(LayoutName(Layout::kBatched), "batched");
}

}  // namespace
}  // namespace swizzle
