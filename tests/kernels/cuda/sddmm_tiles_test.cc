// How a pattern is cut for SDDMM by tiles. Needs no GPU.
#include "kernels/cuda/attention/sddmm_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/format/attention_pattern.h"

namespace swizzle::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// How often each place of the pattern is there, checked against its query and key.
std::vector<int> Found(const SddmmTiles& tiles, const AttentionPattern& pattern) {
  std::vector<int> found(pattern.nnz());
  const auto find = [&](int64_t query, int64_t key, uint32_t place) {
    EXPECT_GE(place, pattern.row_offsets[query]);
    EXPECT_LT(place, pattern.row_offsets[query + 1]);
    EXPECT_EQ(pattern.col_indices[place], key);
    ++found[place];
  };
  for (const SddmmTiles::Work& work : tiles.work) {
    EXPECT_LE(work.tiles, SddmmTiles::kMostTiles);
    for (uint32_t tile = work.first_tile; tile < work.first_tile + work.tiles; ++tile) {
      for (int group = 0; group < SddmmTiles::kGroups; ++group) {
        const uint32_t begin = tiles.list_offsets[tile * SddmmTiles::kGroups + group];
        const uint32_t end = tiles.list_offsets[tile * SddmmTiles::kGroups + group + 1];
        for (uint32_t at = begin; at < end; ++at) {
          const int query = group * SddmmTiles::kGroupQueries + tiles.lists[at] / SddmmTiles::kKeys;
          find(int64_t{work.query_block} * SddmmTiles::kQueries + query,
               int64_t{tiles.key_blocks[tile]} * SddmmTiles::kKeys + tiles.lists[at] % SddmmTiles::kKeys,
               at - begin + tiles.bases[int64_t{tile} * SddmmTiles::kQueries + query]);
        }
      }
    }
  }
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (uint32_t at = tiles.rest_offsets[query]; at < tiles.rest_offsets[query + 1]; ++at) {
      find(query, tiles.rest_keys[at], tiles.rest_places[at]);
    }
  }
  return found;
}

TEST(SddmmTilesTest, HoldsEveryNonzeroOnce) {
  for (const AttentionPattern& pattern :
       {AttentionPattern::FromBand(1, 1, true), AttentionPattern::FromBand(517, 150, false),
        AttentionPattern::FromBandAndRandom(2500, 40, 0.07, 1),
        AttentionPattern::FromBlocks(700, 128, {{0, 0}, {0, 2}, {2, 1}, {5, 5}})}) {
    for (const int64_t least : {1, 300, 8000, 9000}) {
      EXPECT_THAT(Found(SddmmTiles::Cut(pattern, least), pattern), Each(1)) << pattern.tokens << ", " << least;
    }
  }
}

TEST(SddmmTilesTest, MakesTilesOfThoseThatHoldEnough) {
  // The last block of queries has 60 rows; tiles hold 64 * 128 nonzeros and, in the last block, 64 * 60.
  const auto pattern = AttentionPattern::FromBlocks(700, 128, {{0, 0}, {2, 1}, {5, 5}});
  EXPECT_THAT(SddmmTiles::Cut(pattern, 60 * 60 + 1).key_blocks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SddmmTiles::Cut(pattern, 60 * 60).key_blocks, ElementsAre(0, 1, 2, 3, 10));
  EXPECT_THAT(SddmmTiles::Cut(pattern, 64 * 128).rest_keys, ::testing::SizeIs(60 * 60));
}

TEST(SddmmTilesTest, StartsTheLongestWorkFirst) {
  const auto tiles = SddmmTiles::Cut(AttentionPattern::FromBand(2000, 2000, true), 1);
  EXPECT_EQ(tiles.work.front().tiles, SddmmTiles::kMostTiles);
  EXPECT_TRUE(std::ranges::is_sorted(tiles.work, std::ranges::greater(), &SddmmTiles::Work::tiles));
}

TEST(SddmmTilesTest, EmptyPatternsHaveNoTiles) {
  const auto tiles = SddmmTiles::Cut({.tokens = 3, .row_offsets = {0, 0, 0, 0}, .col_indices = {}}, 1);
  EXPECT_THAT(tiles.work, IsEmpty());
  EXPECT_THAT(tiles.rest_offsets, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace swizzle::cuda
