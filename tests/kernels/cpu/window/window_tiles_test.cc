#include "kernels/cpu/window/window_tiles.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/reference/layout.h"

namespace swizzle::cpu {
namespace {

using TileRun = Run;  // inside a test, Run is GoogleTest's

Problem DepthwiseProblem(const Extent& input, int stride, int pad) {
  Problem problem;
  problem.SetOp(Op::kDepthwiseConv);
  problem.input = input;
  problem.window() = {3, 3, stride, stride, pad, pad, pad, pad, 1, 1, false};
  problem.output = {input.batch, input.channels, (input.height + 2 * pad - 3) / stride + 1,
                    (input.width + 2 * pad - 3) / stride + 1};
  return problem;
}

TEST(AppendRuns, FindsEveryPositionInBothLayouts) {
  const Extent extent{3, 5, 7, 7};
  for (Layout layout : {Layout::kNchw, Layout::kPanels}) {
    std::vector<TileRun> room(MaxRuns(40));
    const TileRun* end = AppendRuns(extent, layout, 1, 5, 40, 100, room.data());
    ASSERT_LE(end - room.data(), MaxRuns(40));
    int64_t position = 5;
    for (const TileRun* run = room.data(); run != end; ++run) {
      EXPECT_EQ(run->scratch, 100 + position - 5);
      for (int64_t i = 0; i < run->length; ++i, ++position) {
        for (int64_t c : {0, 4}) {
          EXPECT_EQ(run->At(c) + i, reference::ElementOffset(extent, layout, c, 49 + position));
        }
      }
    }
    EXPECT_EQ(position, 45);
  }
}

TEST(WindowTiles, CoverEveryOutputRowOfEveryImageOnce) {
  for (int64_t height : {1, 7, 14, 61, 112, 300}) {
    const Problem problem = DepthwiseProblem({2, 3, height, 112}, 1, 1);
    const WindowTiles tiles(problem);
    std::set<std::pair<int64_t, int64_t>> rows;
    for (int64_t i = 0; i < tiles.count(); ++i) {
      const Tile tile = tiles.At(i);
      EXPECT_GT(tile.rows, 0);
      for (int64_t y = 0; y < tile.rows; ++y) {
        EXPECT_TRUE(rows.insert({tile.image, tile.first_row + y}).second) << "row twice";
      }
    }
    EXPECT_EQ(static_cast<int64_t>(rows.size()), 2 * height);
  }
}

// Input runs and padding together make up the scratch plane's rows, without a gap or an overlap.
void ExpectScratchIsWhole(const Problem& problem) {
  const WindowTiles tiles(problem);
  std::vector<Run> room(tiles.MaxInputRuns());
  for (int64_t i = 0; i < tiles.count(); ++i) {
    const Tile tile = tiles.At(i);
    const int64_t width = problem.input.width;
    const int64_t scratch_width = tiles.split() ? 2 * tiles.in_pitch() : width;
    int64_t covered = 0;
    for (const Run& run : tiles.InputRuns(tile, Layout::kPanels, room.data())) covered += run.length;
    for (const auto& [begin, end] : tiles.PaddingOf(tile)) covered += (end - begin) / tiles.in_pitch() * width;
    const int64_t rows = (tile.rows - 1) * problem.window().stride_h + 3;
    EXPECT_EQ(covered, rows * width);
    for (const Run& run : tiles.InputRuns(tile, Layout::kPanels, room.data())) {
      EXPECT_LE(run.scratch % scratch_width + (scratch_width == width ? 0 : run.length), scratch_width);
    }
    EXPECT_LE(rows * tiles.in_pitch() + 16, tiles.in_floats() / (tiles.split() ? 2 : 1));
  }
}

TEST(WindowTiles, RunsAndPaddingFillTheScratchPlane) {
  for (int64_t size : {1, 4, 7, 14, 57, 112}) {
    for (int stride : {1, 2}) ExpectScratchIsWhole(DepthwiseProblem({3, 4, size, size}, stride, 1));
  }
}

TEST(WindowTiles, OnlyStrideTwoSplitsColumns) {
  EXPECT_FALSE(WindowTiles(DepthwiseProblem({1, 1, 9, 9}, 1, 1)).split());
  EXPECT_TRUE(WindowTiles(DepthwiseProblem({1, 1, 9, 9}, 2, 1)).split());
  EXPECT_FALSE(WindowTiles(DepthwiseProblem({1, 1, 9, 9}, 3, 1)).split());
}

TEST(WindowTiles, WorkspaceHoldsEveryPart) {
  const Problem problem = DepthwiseProblem({2, 40, 28, 28}, 2, 1);
  const WindowTiles tiles(problem);
  EXPECT_EQ(tiles.WorkspaceBytes() % kBufferAlignment, 0u);
  std::vector<std::byte> memory(2 * tiles.WorkspaceBytes());
  const TileWorkspace first(tiles, memory, 0);
  const TileWorkspace second(tiles, memory, 1);
  EXPECT_LE(reinterpret_cast<std::byte*>(first.out_runs + tiles.MaxOutputRuns()),
            reinterpret_cast<std::byte*>(second.in));
  EXPECT_LE(reinterpret_cast<std::byte*>(second.out_runs + tiles.MaxOutputRuns()), memory.data() + memory.size());
}

}  // namespace
}  // namespace swizzle::cpu
