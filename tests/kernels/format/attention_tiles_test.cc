#include "kernels/format/attention_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace swizzle {
namespace {

using ::testing::ElementsAre;

TEST(AttentionTilesTest, WorkedExample) {
  AttentionPattern pattern{.tokens = 16, .row_offsets = {0}, .col_indices = {1, 9, 10, 2}};
  for (int query = 0; query < 16; ++query) pattern.row_offsets.push_back(query < 8 ? 3 : 4);
  const AttentionTiles tiles = AttentionTiles::Cut(pattern, {.group = 8, .groups = 1, .key_block = 16});
  EXPECT_THAT(tiles.tile_offsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(tiles.headers, ElementsAre(2u << 16, 2u << 16));
  EXPECT_THAT(tiles.order, ElementsAre(0, 1));
  constexpr uint32_t m = 1u << 16;
  EXPECT_THAT(tiles.lists, ElementsAre(0, 1 | m, 10 | m, 3, 4, 5, 6, 7, 0, 9 | m, 2, 3, 4, 5, 6, 7,  //
                                       0, 1, 2 | m, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(AttentionTilesTest, RoundTrip) {
  const AttentionPattern patterns[] = {
      AttentionPattern::FromBand(1, 1, true),
      AttentionPattern::FromBand(333, 70, true),
      AttentionPattern::FromBand(256, 300, false),
      AttentionPattern::FromBandAndRandom(700, 20, 0.1, 5),
      AttentionPattern::FromBlocks(700, 128, {{0, 0}, {1, 3}, {3, 3}, {5, 5}}),
      {.tokens = 5, .row_offsets = {0, 0, 0, 0, 0, 0}, .col_indices = {}},
  };
  for (const AttentionPattern& pattern : patterns) {
    for (const AttentionTileShape shape : {AttentionTileShape{8, 16, 64}, {16, 12, 128}, {16, 8, 64}}) {
      const AttentionPattern back = AttentionTiles::Cut(pattern, shape).ToPattern();
      EXPECT_EQ(back.row_offsets, pattern.row_offsets);
      EXPECT_EQ(back.col_indices, pattern.col_indices);
    }
  }
}

TEST(AttentionTilesTest, FullGroupsHaveNoList) {
  const AttentionTiles tiles =
      AttentionTiles::Cut(AttentionPattern::FromBlocks(256, 128, {{0, 1}, {1, 0}}), {16, 8, 64});
  EXPECT_EQ(tiles.entries.size(), 4u);
  EXPECT_TRUE(tiles.lists.empty());
  for (const uint32_t header : tiles.headers) EXPECT_EQ(header, AttentionTiles::kFull);
}

TEST(AttentionTilesTest, HeavyTilesComeFirst) {
  const AttentionTiles tiles = AttentionTiles::Cut(AttentionPattern::FromBand(512, 512, true), {16, 8, 64});
  EXPECT_THAT(tiles.order, ElementsAre(3, 2, 1, 0));
}

TEST(AttentionTilesTest, OctetsHaveDifferentPlacesWhereTheyCan) {
  const AttentionTiles tiles =
      AttentionTiles::Cut(AttentionPattern::FromBand(64, 64, true), {.group = 8, .groups = 8, .key_block = 64});
  // Group 3 attends to keys 0 to 31: four octets with a key of each place.
  const uint32_t header = tiles.headers[3];
  EXPECT_EQ(header >> 16, 4u);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ((tiles.lists[(header & 0xFFFF) * 8 + i] & 0xFFFF) % 8, i % 8);
}

TEST(AttentionTilesTest, KeysOfOnePlaceFillTheHoles) {
  // Eight keys of the same place still make two octets.
  AttentionPattern pattern{.tokens = 64, .row_offsets = {0}, .col_indices = {0, 8, 16, 24, 32, 40, 48, 56}};
  for (int query = 0; query < 64; ++query) pattern.row_offsets.push_back(8);
  const AttentionTiles tiles = AttentionTiles::Cut(pattern, {8, 8, 64});
  ASSERT_EQ(tiles.lists.size(), 16u);
  std::set<uint32_t> keys;
  for (const uint32_t entry : tiles.lists) {
    if (entry >> 16 != 0) keys.insert(entry & 0xFFFF);
  }
  EXPECT_THAT(keys, ElementsAre(0, 8, 16, 24, 32, 40, 48, 56));
}

}  // namespace
}  // namespace swizzle
