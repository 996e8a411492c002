// What GatherStem reads, and how weights are put in its order. That it reads so is kernel_rows_test.cc's.
#include "kernels/cpu/int8/stem_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace swizzle::cpu {
namespace {

Window Square(int size, int stride, int dilation) {
  return {size, size, stride, stride, 0, 0, 0, 0, dilation, dilation, false};
}

TEST(StemColumns, WorkedExample) {
  const StemColumns columns(Square(3, 2, 1), 3);
  ASSERT_EQ(columns.quads().size(), 7u);
  const StemQuad& quad = columns.quads()[0];
  EXPECT_EQ(quad.first_tap[1].row, 1);
  const uint8_t expected[] = {0, 1, 2, 64, 2, 3, 4, 66, 4, 5, 6, 68};
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), quad.index.begin()));
}

// Every column of every position is the byte of its own tap, and is within what two vectors have.
TEST(StemColumns, EveryByteIsOfItsTap) {
  for (const auto& [size, stride, dilation, channels] :
       {std::array{3, 1, 1, 3}, std::array{3, 4, 1, 1}, std::array{5, 2, 3, 2}, std::array{7, 2, 1, 3},
        std::array{11, 4, 1, 3}, std::array{16, 1, 2, 1}}) {
    const Window window = Square(size, stride, dilation);
    ASSERT_TRUE(StemColumns::Fit(window));
    const StemColumns columns(window, channels);
    std::set<int64_t> seen;
    for (const StemQuad& quad : columns.quads()) {
      for (int t = 0; t < StemQuad::kTaps; ++t) {
        const StemQuad::Tap& tap = quad.taps[t];
        seen.insert((tap.channel * int64_t{size} + tap.row) * size + tap.column);
        for (int64_t p = 0; p < 16; ++p) {
          const int byte = quad.index[p * StemQuad::kTaps + t];
          const StemQuad::Tap& first = quad.first_tap[byte / 64];
          EXPECT_EQ(first.channel, tap.channel);
          EXPECT_EQ(first.row, tap.row);
          EXPECT_EQ(byte % 64, p * stride + (tap.column - first.column) * dilation);
        }
      }
    }
    EXPECT_EQ(std::ssize(seen), channels * size * size);
  }
}

TEST(StemColumns, FitsWhatTwoVectorsHave) {
  EXPECT_FALSE(StemColumns::Fit(Square(2, 1, 1)));  // a quad may stand in three rows
  EXPECT_FALSE(StemColumns::Fit(Square(3, 5, 1)));
  EXPECT_FALSE(StemColumns::Fit(Square(3, 4, 2)));
  EXPECT_TRUE(StemColumns::Fit(Square(3, 4, 1)));
}

TEST(StemColumns, WeightsFollowTheImage) {
  ByteWeight weight;
  weight.rows = 1;
  weight.cols = 18;
  weight.entries = {{{0, 1}, {1, 2}, {3, 3}, {17, 4}}};  // tap 0 of channels 0 and 1, tap 1 and the last of channel 1
  const ByteWeight made = InOrderOfImage(weight, Square(3, 1, 1));
  std::vector<std::pair<int32_t, int>> entries;
  for (const ByteWeight::Entry& entry : made.entries[0]) entries.emplace_back(entry.column, entry.value);
  EXPECT_EQ(entries, (std::vector<std::pair<int32_t, int>>{{0, 1}, {9, 2}, {10, 3}, {17, 4}}));
}

}  // namespace
}  // namespace swizzle::cpu
