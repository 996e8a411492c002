#include "kernels/cpu/int8/quad_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace swizzle::cpu {
namespace {

ByteWeight WeightOf(std::vector<std::vector<ByteWeight::Entry>> entries, int64_t cols) {
  ByteWeight weight;
  weight.rows = std::ssize(entries);
  weight.cols = cols;
  weight.entries = std::move(entries);
  for (int64_t row = 0; row < weight.rows; ++row) {
    weight.start.push_back(static_cast<int32_t>(10 * row));
    weight.scale.push_back(static_cast<float>(row) + 0.5f);
  }
  return weight;
}

// The header's.
TEST(QuadWeightTest, WorkedExample) {
  const QuadWeight weight(WeightOf({{{0, 1}, {2, -2}, {3, 3}, {7, -4}, {9, 5}}}, 10), QuadShape{}, 1);
  const QuadRows rows = weight.Slice(0);
  ASSERT_EQ(rows.groups.size(), 1u);
  EXPECT_EQ(rows.groups[0].strips, 1u);
  EXPECT_EQ(rows.groups[0].quads, 2u);
  EXPECT_EQ(rows.weights[0], PackQuad({1, -2, 3, -4}));
  EXPECT_EQ(rows.weights[1], PackQuad({5, 0, 0, 0}));
  ASSERT_EQ(rows.far_columns, nullptr);
  const std::vector<uint16_t> offsets(rows.near_offsets, rows.near_offsets + 8);
  EXPECT_EQ(offsets, (std::vector<uint16_t>{0, 16, 24, 56, 72, 72, 72, 72}));
}

TEST(QuadWeightTest, WorkedExampleInBlocks) {
  const QuadWeight weight(WeightOf({{{0, 1}, {2, -2}, {3, 3}, {7, -4}, {9, 5}}}, 10), QuadShape{1, true}, 1);
  const QuadRows rows = weight.Slice(0);
  EXPECT_TRUE(rows.shape.blocks);
  ASSERT_EQ(rows.groups.size(), 1u);
  EXPECT_EQ(rows.groups[0].quads, 3u);
  EXPECT_EQ(std::vector<int32_t>(rows.weights, rows.weights + 3),
            (std::vector<int32_t>{PackQuad({1, 0, -2, 3}), PackQuad({0, 0, 0, -4}), PackQuad({0, 5, 0, 0})}));
  EXPECT_EQ(std::vector<uint16_t>(rows.near_offsets, rows.near_offsets + 3), (std::vector<uint16_t>{0, 32, 64}));
}

TEST(QuadWeightTest, WorkedExampleInPairs) {
  const QuadWeight weight(WeightOf({{{0, 1}, {2, 2}, {3, -3}, {7, -4}, {9, 5}}}, 10), QuadShape{.pairs = true}, 1);
  const QuadRows rows = weight.Slice(0);
  ASSERT_EQ(rows.groups[0].quads, 2u);
  EXPECT_EQ(rows.weights[0], PackQuad({1, 0, 2, -4}));
  EXPECT_EQ(rows.weights[1], PackQuad({5, -3, 0, 0}));
  EXPECT_EQ(std::vector<uint16_t>(rows.near_offsets, rows.near_offsets + 8),
            (std::vector<uint16_t>{0, 0, 16, 56, 72, 24, 24, 24}));
}

// Every weight stands once, and no two products of a pair leave 16 bits.
TEST(QuadWeightTest, PairsDoNotSaturate) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<ByteWeight::Entry> entries;
    const int least = turn % 3 == 0 ? 1 : -128;
    for (int32_t column = 0; column < turn; ++column) {
      const int value = least + static_cast<int>(random() % (128 - least));
      if (value != 0) entries.push_back({column, static_cast<int8_t>(turn % 5 == 0 ? 127 : value)});
    }
    const QuadWeight weight(WeightOf({entries}, 256), QuadShape{.pairs = true}, 1);
    const QuadRows rows = weight.Slice(0);
    std::vector<int> found(256), expected(256);
    for (const ByteWeight::Entry& entry : entries) expected[entry.column] += entry.value;
    for (uint32_t quad = 0; quad < rows.groups[0].quads; ++quad) {
      int8_t bytes[4];
      std::memcpy(bytes, rows.weights + quad, sizeof(bytes));
      for (int i = 0; i < 4; ++i) found[rows.near_offsets[4 * quad + i] / 8] += bytes[i];
      for (int i = 0; i < 4; i += 2) {
        EXPECT_LE(255 * (std::max<int>(bytes[i], 0) + std::max<int>(bytes[i + 1], 0)), 32767);
        EXPECT_GE(255 * (std::min<int>(bytes[i], 0) + std::min<int>(bytes[i + 1], 0)), -32768);
      }
    }
    EXPECT_EQ(found, expected);
  }
}

// Rows of a strip have its columns in common, and zeros where they have none; the last strip is filled up.
TEST(QuadWeightTest, StripsShareColumns) {
  const ByteWeight bytes = WeightOf({{{1, 1}, {4, 2}, {6, 3}}, {{4, -5}, {7, -6}, {9, 7}}, {{2, 8}}}, 10);
  EXPECT_EQ(CountQuads(bytes, QuadShape{1, false}), 3);
  EXPECT_EQ(CountQuads(bytes, QuadShape{2, false}), 3);
  EXPECT_EQ(CountQuads(bytes, QuadShape{4, false}), 2);
  EXPECT_EQ(CountQuads(bytes, QuadShape{2, true}), 4);
  const QuadWeight weight(bytes, QuadShape{2, false}, 1);
  const QuadRows rows = weight.Slice(0);
  ASSERT_EQ(rows.groups.size(), 2u);
  EXPECT_EQ(rows.groups[0].quads, 1u);
  EXPECT_EQ(std::vector<uint32_t>(rows.rows, rows.rows + 4), (std::vector<uint32_t>{2, QuadRows::kNoRow, 0, 1}));
  EXPECT_EQ(std::vector<int32_t>(rows.start, rows.start + 4), (std::vector<int32_t>{20, 0, 0, 10}));
  const std::vector<int32_t> weights(rows.weights, rows.weights + 6);
  EXPECT_EQ(weights, (std::vector<int32_t>{PackQuad({8, 0, 0, 0}), 0, PackQuad({1, 2, 3, 0}), PackQuad({0, -5, 0, -6}),
                                           0, PackQuad({7, 0, 0, 0})}));
  const std::vector<uint16_t> offsets(rows.near_offsets, rows.near_offsets + 12);
  EXPECT_EQ(offsets, (std::vector<uint16_t>{16, 16, 16, 16, 8, 32, 48, 56, 72, 72, 72, 72}));
}

// A strip has a column as often as one of its rows.
TEST(QuadWeightTest, ColumnsMayComeSeveralTimes) {
  const ByteWeight bytes = WeightOf({{{1, 127}, {1, 73}, {4, 2}}, {{1, 5}, {4, -128}, {4, -7}}}, 10);
  const QuadWeight one(bytes, QuadShape{}, 1);
  EXPECT_EQ(one.Slice(0).weights[0], PackQuad({127, 73, 2, 0}));
  EXPECT_EQ(one.Slice(0).weights[1], PackQuad({5, -128, -7, 0}));
  const QuadWeight two(bytes, QuadShape{2, false}, 1);
  const QuadRows rows = two.Slice(0);
  EXPECT_EQ(rows.groups[0].quads, 1u);
  EXPECT_EQ(rows.weights[0], PackQuad({127, 73, 2, 0}));
  EXPECT_EQ(rows.weights[1], PackQuad({5, 0, -128, -7}));
  EXPECT_EQ(std::vector<uint16_t>(rows.near_offsets, rows.near_offsets + 4), (std::vector<uint16_t>{8, 8, 32, 32}));
}

// Every row stands in one slice, beside rows of as many quads, with its own start and scale; slices are of like work.
TEST(QuadWeightTest, SlicesHoldEveryRowOnce) {
  std::vector<std::vector<ByteWeight::Entry>> entries(37);
  for (size_t row = 0; row < entries.size(); ++row) {
    for (size_t i = 0; i < row * 7 % 23; ++i) entries[row].push_back({static_cast<int32_t>(3 * i), 1});
  }
  const QuadWeight weight(WeightOf(entries, 100), QuadShape{}, 3);
  ASSERT_EQ(weight.slices(), 3);
  std::map<uint32_t, int> seen;
  std::vector<uint32_t> quads(3);
  for (int64_t slice = 0; slice < 3; ++slice) {
    const QuadRows rows = weight.Slice(slice);
    size_t r = 0;
    for (const QuadGroup& group : rows.groups) {
      quads[slice] += group.strips * group.quads;
      for (uint32_t i = 0; i < group.strips; ++i, ++r) {
        ++seen[rows.rows[r]];
        EXPECT_EQ((entries[rows.rows[r]].size() + 3) / 4, group.quads);
        EXPECT_EQ(rows.start[r], static_cast<int32_t>(10 * rows.rows[r]));
        EXPECT_EQ(rows.scale[r], static_cast<float>(rows.rows[r]) + 0.5f);
      }
    }
  }
  EXPECT_EQ(seen.size(), entries.size());
  for (const auto& [row, count] : seen) EXPECT_EQ(count, 1) << row;
  EXPECT_LE(*std::max_element(quads.begin(), quads.end()) - *std::min_element(quads.begin(), quads.end()), 6u);
}

// Each part has every row of its slice, with the columns that lie in it, and rows of as many quads together.
TEST(QuadWeightTest, PartsCutColumns) {
  constexpr int64_t kCols = 100, kParts = 3;  // from columns 0, 32, 64 on
  std::mt19937 random(7);
  std::vector<std::vector<ByteWeight::Entry>> entries(11);
  for (auto& row : entries) {
    for (int32_t column = 0; column < kCols; ++column) {
      if (random() % 3 == 0) row.push_back({column, static_cast<int8_t>(random() % 127 + 1)});
    }
  }
  entries[4].clear();
  for (const bool blocks : {false, true}) {
    const QuadWeight weight(WeightOf(entries, kCols), QuadShape{1, blocks}, 2, kParts);
    ASSERT_EQ(weight.slices(), 2);
    ASSERT_EQ(weight.parts(), kParts);
    std::vector<std::vector<int>> found(entries.size(), std::vector<int>(kCols + 4)), expected = found;
    for (size_t row = 0; row < entries.size(); ++row) {
      for (const ByteWeight::Entry& entry : entries[row]) expected[row][entry.column] = entry.value;
    }
    for (int64_t slice = 0; slice < 2; ++slice) {
      std::vector<uint32_t> strips;
      for (int64_t part = 0; part < kParts; ++part) {
        const QuadRows rows = weight.Slice(slice, part);
        EXPECT_EQ(rows.begins, part == 0);
        EXPECT_EQ(rows.ends, part == kParts - 1);
        std::vector<uint32_t> seen;
        size_t quad = 0;
        for (const QuadGroup& group : rows.groups) {
          for (uint32_t i = 0; i < group.strips; ++i) {
            const uint32_t row = rows.rows[seen.size()];
            seen.push_back(row);
            for (uint32_t q = 0; q < group.quads; ++q, ++quad) {
              int8_t bytes[4];
              std::memcpy(bytes, rows.weights + quad, sizeof(bytes));
              for (size_t b = 0; b < 4; ++b) {
                const size_t column = blocks ? rows.near_offsets[quad] / 8 + b : rows.near_offsets[4 * quad + b] / 8;
                EXPECT_GE(column, static_cast<size_t>(32 * part));
                EXPECT_LT(column, static_cast<size_t>(part + 1 < kParts ? 32 * (part + 1) : kCols + 4));
                found[row][column] += bytes[b];
              }
            }
          }
        }
        std::ranges::sort(seen);
        EXPECT_TRUE(part == 0 || seen == strips);
        strips = seen;
      }
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(QuadWeightTest, FarColumnsTakeMoreBits) {
  const QuadWeight near(WeightOf({{{8190, 1}}}, 8191), QuadShape{}, 1),
      far(WeightOf({{{8192, 1}}}, 8193), QuadShape{}, 1);
  EXPECT_EQ(near.Slice(0).near_offsets[0], 8190 * 8);
  EXPECT_EQ(near.Slice(0).far_columns, nullptr);
  EXPECT_EQ(far.Slice(0).far_columns[0], 8192u);
}

}  // namespace
}  // namespace swizzle::cpu
