#include "kernels/cuda/attention/sddmm_tiles.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cuda {
namespace {

// Cuts the rows of one block of queries after the other.
class Cutter {
 public:
  Cutter(const AttentionPattern& pattern, int64_t least)
      : pattern_(pattern), least_(least), tile_of_(CeilDiv(pattern.tokens, SddmmTiles::kKeys)) {
    tiles_.list_offsets = {0};
    tiles_.rest_offsets = {0};
  }

  SddmmTiles Cut() {
    const int64_t blocks = CeilDiv(pattern_.tokens, SddmmTiles::kQueries);
    for (int64_t block = 0; block < blocks; ++block) CutBlock(block);
    std::ranges::stable_sort(tiles_.work, std::ranges::greater(), &SddmmTiles::Work::tiles);
    return std::move(tiles_);
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  void CutBlock(int64_t block) {
    const int64_t first = block * SddmmTiles::kQueries, end = std::min(first + SddmmTiles::kQueries, pattern_.tokens);
    const auto first_tile = static_cast<uint32_t>(tiles_.key_blocks.size());
    ChooseTiles(first, end);
    const auto count = static_cast<uint32_t>(tiles_.key_blocks.size()) - first_tile;
    tiles_.bases.resize(tiles_.key_blocks.size() * SddmmTiles::kQueries);
    lists_.assign(count * SddmmTiles::kGroups, {});
    for (int64_t query = first; query < end; ++query) SortRow(query, static_cast<int>(query - first), first_tile);
    for (const std::vector<uint16_t>& list : lists_) {
      tiles_.lists.insert(tiles_.lists.end(), list.begin(), list.end());
      tiles_.list_offsets.push_back(static_cast<uint32_t>(tiles_.lists.size()));
    }
    for (uint32_t i = 0; i < count; i += SddmmTiles::kMostTiles) {
      tiles_.work.push_back(
          {static_cast<uint32_t>(block), first_tile + i, std::min<uint32_t>(count - i, SddmmTiles::kMostTiles)});
    }
  }

  // tile_of_ names the tile of each block of keys, or kNone.
  void ChooseTiles(int64_t first, int64_t end) {
    std::vector<int64_t> nonzeros(tile_of_.size());
    for (int64_t query = first; query < end; ++query) {
      for (const uint32_t key : pattern_.Keys(query)) ++nonzeros[key / SddmmTiles::kKeys];
    }
    for (size_t i = 0; i < nonzeros.size(); ++i) {
      tile_of_[i] = nonzeros[i] < least_ ? kNone : static_cast<uint32_t>(tiles_.key_blocks.size());
      if (nonzeros[i] >= least_) tiles_.key_blocks.push_back(static_cast<uint32_t>(i));
    }
  }

  void SortRow(int64_t query, int row, uint32_t first_tile) {
    uint32_t place = pattern_.row_offsets[query], last = kNone;
    for (const uint32_t key : pattern_.Keys(query)) {
      const uint32_t tile = tile_of_[key / SddmmTiles::kKeys];
      if (tile == kNone) {
        tiles_.rest_keys.push_back(key);
        tiles_.rest_places.push_back(place);
      } else {
        auto& list = lists_[(tile - first_tile) * SddmmTiles::kGroups + row / SddmmTiles::kGroupQueries];
        if (tile != last) {
          tiles_.bases[int64_t{tile} * SddmmTiles::kQueries + row] = place - static_cast<uint32_t>(list.size());
        }
        list.push_back(
            static_cast<uint16_t>(row % SddmmTiles::kGroupQueries * SddmmTiles::kKeys + key % SddmmTiles::kKeys));
      }
      last = tile;
      ++place;
    }
    tiles_.rest_offsets.push_back(static_cast<uint32_t>(tiles_.rest_keys.size()));
  }

  const AttentionPattern& pattern_;
  const int64_t least_;
  std::vector<uint32_t> tile_of_;
  std::vector<std::vector<uint16_t>> lists_;  // of the block's tiles and their groups
  SddmmTiles tiles_;
};

}  // namespace

SddmmTiles SddmmTiles::Cut(const AttentionPattern& pattern, int64_t least) { return Cutter(pattern, least).Cut(); }

StatusOr<DeviceSddmmTiles> DeviceSddmmTiles::Make(const SddmmTiles& tiles) {
  DeviceSddmmTiles device;
  if (tiles.work.empty()) return device;
  using Array = DeviceArray<uint32_t>;
  SWIZZLE_ASSIGN_OR_RETURN(device.work_, DeviceArray<SddmmTiles::Work>::Upload(tiles.work));
  SWIZZLE_ASSIGN_OR_RETURN(device.lists_, DeviceArray<uint16_t>::Upload(tiles.lists));
  SWIZZLE_ASSIGN_OR_RETURN(device.key_blocks_, Array::Upload(tiles.key_blocks));
  SWIZZLE_ASSIGN_OR_RETURN(device.list_offsets_, Array::Upload(tiles.list_offsets));
  SWIZZLE_ASSIGN_OR_RETURN(device.bases_, Array::Upload(tiles.bases));
  SWIZZLE_ASSIGN_OR_RETURN(device.rest_offsets_, Array::Upload(tiles.rest_offsets));
  SWIZZLE_ASSIGN_OR_RETURN(device.rest_keys_, Array::Upload(tiles.rest_keys));
  SWIZZLE_ASSIGN_OR_RETURN(device.rest_places_, Array::Upload(tiles.rest_places));
  return device;
}

}  // namespace swizzle::cuda
