#include "kernels/operator/count_zeros.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace swizzle {
namespace {

// The worked example of the header.
TEST(ZerosCountTest, CountsWhatIsEmpty) {
  std::vector<float> row(16);
  row[9] = 3.0f;
  ZerosCount count({1, 2, 2, 4});
  count.Add(row);
  EXPECT_EQ(count.Shares(), (InputZeros{0.5, 0.5, 0.75, 15.0 / 16}));
  row.assign(16, 0.0f);
  row[0] = -1.0f;
  count.Add(row);
  EXPECT_EQ(count.Shares(), (InputZeros{0.0, 0.5, 0.75, 15.0 / 16})) << "each channel holds something in some row";
  EXPECT_EQ(count.rows(), 2);
}

TEST(ZerosCountTest, RunsBeginAnewInEveryLine) {
  std::vector<float> row(2 * 33);
  row[32] = 1.0f;  // the second run of the first line, which is of one element
  ZerosCount count({1, 1, 2, 33});
  count.Add(row);
  EXPECT_EQ(count.Shares(), (InputZeros{0.0, 0.0, 0.75, 65.0 / 66}));
}

TEST(ZerosCountTest, NegativeZerosAreZerosAndNotANumberIsNone) {
  ZerosCount count({1, 2, 1, 1});
  count.Add(std::vector<float>{-0.0f, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(count.Shares(), (InputZeros{0.5, 0.5, 0.5, 0.5}));
}

TEST(InputZerosTest, SharesRiseFrom0To1) {
  EXPECT_TRUE(Validate(InputZeros{0, 0.25, 0.25, 1}).ok());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const InputZeros& wrong : {InputZeros{0, 0, 0, 1.5},
                                  {-0.1, 0, 0, 0},
                                  {0.5, 0.4, 0.5, 0.5},
                                  {0, 0.5, 0.4, 0.5},
                                  {0, 0, 0.5, 0.4},
                                  {0, 0, 0, kNan},
                                  {kNan, 0, 0, 0}}) {
    EXPECT_EQ(Validate(wrong).code(), StatusCode::kInvalidArgument) << ZerosText(wrong);
  }
}

// What is drawn has the shares that it was drawn for, by the same count.
TEST(DrawZerosTest, HasTheSharesAskedFor) {
  for (const Extent& extent : {Extent{16, 200, 20, 75}, Extent{16, 300, 14, 14}}) {
    for (const InputZeros& zeros : {InputZeros{0, 0, 0, 0.5},
                                    {0.1, 0.3, 0.6, 0.9},
                                    {0.9, 0.95, 0.98, 0.99},
                                    {0, 0, 0.5, 0.5},
                                    {1, 1, 1, 1},
                                    {0, 0, 0, 0}}) {
      std::vector<float> rows(static_cast<size_t>(extent.channels * extent.positions()), 7.0f);
      DrawZeros(zeros, extent, [&](const DrawnRun& run) {
        float* const to = rows.data() + (run.row * extent.channels + run.channel) * extent.plane() + run.position;
        for (int i = 0; i < run.count; ++i) to[i] = static_cast<float>(run.held >> i & 1);
      });
      ZerosCount count(extent);
      const int64_t elements = extent.channels * extent.plane();
      for (int64_t row = 0; row < extent.batch; ++row) count.Add(std::span(rows).subspan(row * elements, elements));
      const InputZeros drawn = count.Shares();
      SCOPED_TRACE(Concat("asked for ", ZerosText(zeros), ", drawn ", ZerosText(drawn)));
      EXPECT_NEAR(drawn.channels, zeros.channels, 0.01);
      EXPECT_NEAR(drawn.planes, zeros.planes, 0.02);
      EXPECT_NEAR(drawn.runs, zeros.runs, 0.02);
      EXPECT_NEAR(drawn.elements, zeros.elements, 0.02);
    }
  }
}

}  // namespace
}  // namespace swizzle
