// Pieces cover every output once, and read what their windows reach.
#include "kernels/cpu/int8/conv_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/layer_shapes.h"

namespace swizzle::cpu {
namespace {

constexpr CacheSizes kCaches{int64_t{32} << 10, int64_t{1} << 20};

Problem ConvProblem(const Extent& input, int64_t channels, const Window& window, int threads) {
  Problem problem;
  problem.op = Op::kConv;
  problem.attributes = window;
  problem.input = input;
  const auto size = [](int64_t in, int64_t pads, int64_t reach, int64_t stride) {
    return (in + pads - reach) / stride + 1;
  };
  problem.output = {input.batch, channels,
                    size(input.height, window.pad_top + window.pad_bottom,
                         int64_t{window.kernel_h - 1} * window.dilation_h + 1, window.stride_h),
                    size(input.width, window.pad_left + window.pad_right,
                         int64_t{window.kernel_w - 1} * window.dilation_w + 1, window.stride_w)};
  problem.threads = threads;
  return problem;
}

TEST(ConvPiecesTest, WorkedExample) {
  const ConvPieces pieces = CutIntoPieces(ConvProblem({1, 64, 56, 56}, 64, Square(3, 1, 1), 1), kCaches);
  EXPECT_EQ(pieces.parts, 1);
  EXPECT_EQ(pieces.part_channels, 64);
  ASSERT_EQ(pieces.bands.size(), 4u);
  EXPECT_EQ(pieces.bands[0].shape, (BandShape{.input_rows = 15, .output_rows = 14, .pad_top = 1}));
  EXPECT_EQ(pieces.bands[1].first_input_row, 13);
  EXPECT_EQ(pieces.bands[1].first_output_row, 14);
  EXPECT_EQ(pieces.bands[1].shape, (BandShape{.input_rows = 16, .output_rows = 14}));
  EXPECT_EQ(pieces.bands[3].shape, (BandShape{.input_rows = 15, .output_rows = 14, .pad_bottom = 1}));
  EXPECT_EQ(pieces.shapes.size(), 3u);
  EXPECT_EQ(pieces.Count(5), 20);
}

void ExpectBandsCover(const Problem& problem, const ConvPieces& pieces) {
  const Window& window = problem.window();
  int64_t next = 0;
  for (const Band& band : pieces.bands) {
    const BandShape& shape = band.shape;
    EXPECT_EQ(band.first_output_row, next);
    next += shape.output_rows;
    EXPECT_NE(std::ranges::find(pieces.shapes, shape), pieces.shapes.end());
    EXPECT_GE(band.first_input_row, 0);
    EXPECT_GT(shape.input_rows, 0);
    EXPECT_LE(band.first_input_row + shape.input_rows, problem.input.height);
    EXPECT_EQ(band.first_input_row - shape.pad_top, band.first_output_row * window.stride_h - window.pad_top);
    const int64_t read = shape.pad_top + shape.input_rows + shape.pad_bottom;
    const int64_t reach = int64_t{window.kernel_h - 1} * window.dilation_h + 1;
    EXPECT_EQ((read - reach) / window.stride_h + 1, shape.output_rows);
  }
  EXPECT_EQ(next, problem.output.height);
}

TEST(ConvPiecesTest, CoverEveryOutputOnce) {
  int seen = 0;
  for (const LayerShape& shape : ConvShapes()) {
    for (const int threads : {1, 2, 16}) {
      const Problem problem = ConvProblem(shape.input, shape.output_channels, shape.window, threads);
      if (!CanCutIntoPieces(problem)) continue;
      ++seen;
      const ConvPieces pieces = CutIntoPieces(problem, kCaches);
      int64_t channels = 0;
      for (int64_t part = 0; part < pieces.parts; ++part) {
        EXPECT_GT(pieces.PartChannels(part, shape.output_channels), 0);
        channels += pieces.PartChannels(part, shape.output_channels);
      }
      EXPECT_EQ(channels, shape.output_channels);
      if (!pieces.bands.empty()) ExpectBandsCover(problem, pieces);
    }
  }
  EXPECT_GT(seen, 60);
}

TEST(ConvPiecesTest, ThreadsOfOneImageGetChannelsWhereItHasFewRows) {
  const ConvPieces pieces = CutIntoPieces(ConvProblem({1, 64, 7, 7}, 512, {}, 4), kCaches);
  EXPECT_EQ(pieces.parts, 8);
  EXPECT_EQ(pieces.part_channels, 64);
  EXPECT_EQ(pieces.bands.size(), 1u);
}

TEST(ConvPiecesTest, TokensGoInGroups) {
  const ConvPieces pieces = CutIntoPieces(ConvProblem({300, 384, 1, 1}, 384, {}, 1), kCaches);
  EXPECT_TRUE(pieces.bands.empty());
  ASSERT_EQ(pieces.shapes.size(), std::size(ConvPieces::kTokenCounts));
  EXPECT_EQ(pieces.shapes.back().tokens, 1);
  EXPECT_EQ(pieces.Count(300), 5);
}

TEST(ConvPiecesTest, RowsOfPaddingAloneAreNotCut) {
  EXPECT_FALSE(CanCutIntoPieces(ConvProblem({1, 8, 4, 4}, 8, Square(3, 1, 3), 1)));
  EXPECT_TRUE(CanCutIntoPieces(ConvProblem({1, 8, 4, 4}, 8, Square(3, 1, 2), 1)));
}

}  // namespace
}  // namespace swizzle::cpu
