#include "kernels/cpu/window/halved_planes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "kernels/reference/layout.h"

namespace swizzle::cpu {
namespace {

// With `pad` rows and columns before the plane, and as many after it as outputs need.
Problem Halving(const Extent& input, int pad_top, int pad_left, int threads = 1) {
  Problem problem;
  problem.SetOp(Op::kDepthwiseConv);
  problem.input = problem.output = input;
  problem.output.height = (input.height + pad_top) / 2;
  problem.output.width = input.width / 2;
  problem.window() = {3, 3, 2, 2, pad_top, pad_left, 1, 1 - pad_left, 1, 1, false};
  problem.threads = threads;
  return problem;
}

TEST(IsHalved3x3, TakesEvenWidthsAndUsualPadding) {
  EXPECT_TRUE(IsHalved3x3(Halving({1, 1, 112, 112}, 1, 1)));
  EXPECT_TRUE(IsHalved3x3(Halving({1, 1, 112, 112}, 0, 0)));
  EXPECT_TRUE(IsHalved3x3(Halving({1, 1, 7, 6}, 1, 0)));
  EXPECT_FALSE(IsHalved3x3(Halving({1, 1, 8, 7}, 1, 1))) << "odd";
  Problem problem = Halving({1, 1, 8, 8}, 1, 1);
  problem.window().stride_h = 1;
  EXPECT_FALSE(IsHalved3x3(problem));
  problem = Halving({1, 1, 8, 8}, 1, 1);
  problem.window().dilation_w = 2;
  EXPECT_FALSE(IsHalved3x3(problem));
  problem = Halving({1, 1, 8, 8}, 1, 1);
  problem.output.width = 5;
  EXPECT_FALSE(IsHalved3x3(problem)) << "two columns of padding behind the plane";
}

// By the definition of the convolution, lane by lane.
void ExpectPlanned(const Problem& problem) {
  const HalvedPeriod period = PlanHalvedPlanes(problem);
  ASSERT_FALSE(period.units.empty());
  const Extent &in = problem.input, &out = problem.output;
  const int64_t images = period.input_units * kPositionUnit / in.plane();
  ASSERT_EQ(images * in.plane(), period.input_units * kPositionUnit);
  ASSERT_EQ(images * out.plane(), static_cast<int64_t>(period.units.size()) * kPositionUnit);
  for (int64_t index = 0; index < images * out.plane(); ++index) {
    const HalvedUnit& unit = period.units[index / kPositionUnit];
    const int64_t lane = index % kPositionUnit;
    const int64_t row = index / out.width % out.height, column = index % out.width;
    for (int i = 0; i < 3; ++i) {
      const int64_t input_row = 2 * row - problem.window().pad_top + i;
      const bool inside = input_row >= 0 && input_row < in.height;
      ASSERT_EQ(unit.rows[i].inside >> lane & 1, inside) << "output " << index << ", row " << i;
      const int64_t pair = index / out.plane() * in.plane() + input_row * in.width + 2 * column;
      ASSERT_EQ(unit.pairs[lane] + i * in.width, pair);
      if (!inside) continue;
      const int32_t* sources = unit.rows[i].sources;
      ASSERT_NE(std::find(sources, sources + unit.max_sources, pair / kPositionUnit), sources + unit.max_sources);
      const bool left = problem.window().pad_left == 1;
      const bool outer_inside = left ? column > 0 : column + 1 < out.width;
      ASSERT_EQ(unit.outer_inside >> lane & 1, outer_inside);
      if (outer_inside && lane == (left ? 0 : kPositionUnit - 1)) {
        ASSERT_EQ(unit.rows[i].outer, (pair + (left ? -1 : 2)) / kPositionUnit);
      }
    }
  }
}

TEST(PlanHalvedPlanes, FindsWhatTapsRead) {
  for (const Extent& input : {Extent{1, 1, 112, 112}, Extent{1, 1, 56, 56}, Extent{1, 1, 14, 14}, Extent{1, 1, 2, 2},
                              Extent{1, 1, 8, 10}, Extent{1, 1, 9, 36}, Extent{1, 1, 1, 4}}) {
    for (int pad_top : {0, 1}) {
      if (input.height + pad_top < 2) continue;
      for (int pad_left : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << input.height << "x" << input.width << ", " << pad_top << ", " << pad_left);
        ExpectPlanned(Halving(input, pad_top, pad_left));
      }
    }
  }
}

TEST(PlanHalvedPlanes, LeavesPlanesThatWouldTakeALargePlan) {
  EXPECT_TRUE(PlanHalvedPlanes(Halving({1, 1, 7, 10}, 0, 0)).units.empty()) << "some outputs read six units";
  EXPECT_TRUE(PlanHalvedPlanes(Halving({1, 1, 1022, 1022}, 1, 1)).units.empty());
  EXPECT_FALSE(PlanHalvedPlanes(Halving({1, 1, 512, 512}, 1, 1)).units.empty());
}

// Every place is that of its unit, and whatever the range's outputs read is among them.
TEST(PlaceHalvedPart, HasAllThatIsReadAndFitsItsRoom) {
  for (const Extent& input :
       {Extent{1, 40, 112, 112}, Extent{9, 17, 14, 14}, Extent{3, 5, 7, 36}, Extent{40, 1, 2, 2}}) {
    for (int pad : {0, 1}) {
      for (int threads : {1, 3}) {
        const Problem problem = Halving(input, pad, pad, threads);
        const HalvedPeriod period = PlanHalvedPlanes(problem);
        const auto period_units = static_cast<int64_t>(period.units.size());
        CpuStream stream(threads);
        std::mutex mutex;
        std::set<std::pair<int64_t, int64_t>> seen;
        ForEachUnitRange(problem.output, stream, [&](int64_t, const UnitRange& range) {
          std::vector<UnitPlace> places(HalvedWorkspaceBytes(problem) / sizeof(UnitPlace), UnitPlace{-1, -1});
          const HalvedPart part = PlaceHalvedPart(problem, period, range, places.data());
          const std::lock_guard<std::mutex> lock(mutex);
          for (int64_t unit = range.first_unit; unit < range.first_unit + range.units; ++unit) {
            const UnitPlace& output = part.outputs[unit - range.first_unit];
            EXPECT_EQ(output.offset + output.channel_stride * (problem.output.channels - 1),
                      reference::ElementOffset(problem.output, Layout::kPanels, problem.output.channels - 1,
                                               unit * kPositionUnit));
            const HalvedUnit& planned = period.units[unit % period_units];
            for (const HalvedRow& row : planned.rows) {
              const int64_t outer = unit / period_units * period.input_units + row.outer;
              EXPECT_GE(outer, part.first_input);
              EXPECT_LT(part.inputs + (outer - part.first_input), part.outputs);
              for (int32_t source : row.sources) {
                const int64_t input_unit = unit / period_units * period.input_units + source;
                if (input_unit * kPositionUnit >= problem.input.positions()) continue;  // of a spare output
                const UnitPlace& place = part.inputs[input_unit - part.first_input];
                EXPECT_EQ(place.offset,
                          reference::ElementOffset(problem.input, Layout::kPanels, 0, input_unit * kPositionUnit));
              }
            }
            for (int64_t c = range.first_channel; c < range.last_channel; ++c) {
              EXPECT_TRUE(seen.insert({unit, c}).second) << "unit " << unit << " of channel " << c << " twice";
            }
          }
        });
        const int64_t units = PanelGrid(problem.output.positions()).padded_positions() / kPositionUnit;
        EXPECT_EQ(static_cast<int64_t>(seen.size()), units * problem.output.channels);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle::cpu
