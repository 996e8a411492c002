#include "kernels/cpu/window/shifted_planes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "kernels/reference/layout.h"

namespace swizzle::cpu {
namespace {

Problem SameProblem(const Extent& extent, int threads) {
  Problem problem;
  problem.SetOp(Op::kDepthwiseConv);
  problem.input = problem.output = extent;
  problem.window() = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, false};
  problem.threads = threads;
  return problem;
}

void ExpectPlaces(const Extent& extent, int64_t first, const std::vector<UnitPlace>& places) {
  const int64_t units = PanelGrid(extent.positions()).padded_positions() / kPositionUnit;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t position = std::clamp<int64_t>(first + static_cast<int64_t>(i), 0, units - 1) * kPositionUnit;
    for (int64_t c : {int64_t{0}, extent.channels - 1}) {
      EXPECT_EQ(places[i].offset + c * places[i].channel_stride,
                reference::ElementOffset(extent, Layout::kPanels, c, position))
          << "unit " << first + static_cast<int64_t>(i);
    }
  }
}

// 196 positions are panels of 3, 3, 3 and 4 units.
TEST(PlaceUnits, FindsUnitsOfUnequalPanels) {
  const Extent extent{1, 5, 14, 14};
  std::vector<UnitPlace> places(13);
  PlaceUnits(extent, 0, 13, places.data());
  ExpectPlaces(extent, 0, places);
  EXPECT_EQ(places[8].channel_stride, 48);
  EXPECT_EQ(places[9].channel_stride, 64);
}

TEST(PlaceUnits, TakesTheNearestUnitForOnesThatThereAreNot) {
  const Extent extent{3, 7, 9, 31};
  std::vector<UnitPlace> places(70);
  PlaceUnits(extent, -5, 70, places.data());
  ExpectPlaces(extent, -5, places);
}

TEST(ForEachShiftedPart, CoversEveryUnitOfEveryChannelOnce) {
  for (const Extent& extent :
       {Extent{1, 100, 7, 7}, Extent{1, 40, 56, 56}, Extent{8, 16, 28, 28}, Extent{1, 1, 1, 1}}) {
    for (int threads : {1, 2, 3}) {
      const Problem problem = SameProblem(extent, threads);
      std::vector<std::byte> workspace(ShiftedWorkspaceBytes(problem) * threads);
      KernelArgs args;
      args.problem = &problem;
      args.workspace = workspace;
      CpuStream stream(threads);
      std::mutex mutex;
      std::set<std::pair<int64_t, int64_t>> seen;
      ForEachShiftedPart(args, stream, [&](const ShiftedPart& part) {
        const std::lock_guard<std::mutex> lock(mutex);
        const UnitRange& range = part.range;
        ExpectPlaces(extent, range.first_unit, {part.places, part.places + range.units});
        for (int64_t unit = range.first_unit; unit < range.first_unit + range.units; ++unit) {
          for (int64_t c = range.first_channel; c < range.last_channel; ++c) {
            EXPECT_TRUE(seen.insert({unit, c}).second) << "unit " << unit << " of channel " << c << " twice";
          }
        }
      });
      const int64_t units = PanelGrid(extent.positions()).padded_positions() / kPositionUnit;
      EXPECT_EQ(static_cast<int64_t>(seen.size()), units * extent.channels);
    }
  }
}

}  // namespace
}  // namespace swizzle::cpu
