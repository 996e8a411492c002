#include "kernels/format/attention_tiles.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr int kOctet = AttentionTiles::kOctet;

// Deals keys to octets by their remainder; what finds no octet of its own place fills the holes.
void AppendList(const uint16_t* masks, int key_block, std::vector<uint32_t>& lists) {
  std::array<std::vector<uint32_t>, kOctet> by_place;
  size_t keys = 0;
  for (int key = 0; key < key_block; ++key) {
    if (masks[key] == 0) continue;
    by_place[key % kOctet].push_back(static_cast<uint32_t>(key) | static_cast<uint32_t>(masks[key]) << 16);
    ++keys;
  }
  const size_t octets = CeilDiv(keys, size_t{2} * kOctet) * 2, base = lists.size();
  for (size_t i = 0; i < octets * kOctet; ++i) lists.push_back(i % kOctet);
  std::vector<uint32_t> rest;
  for (int place = 0; place < kOctet; ++place) {
    for (size_t i = 0; i < by_place[place].size(); ++i) {
      if (i < octets) {
        lists[base + i * kOctet + place] = by_place[place][i];
      } else {
        rest.push_back(by_place[place][i]);
      }
    }
  }
  for (size_t i = base; !rest.empty(); ++i) {
    if (lists[i] >> 16 != 0) continue;
    lists[i] = rest.back();
    rest.pop_back();
  }
}

// The masks of one tile's groups: [groups][padded tokens].
class TileMasks {
 public:
  TileMasks(const AttentionPattern& pattern, const AttentionTileShape& shape)
      : pattern_(pattern),
        shape_(shape),
        blocks_(CeilDiv(pattern.tokens, shape.key_block)),
        masks_(shape.groups * blocks_ * shape.key_block),
        used_(blocks_) {}

  int64_t blocks() const { return blocks_; }
  bool used(int64_t block) const { return used_[block]; }
  const uint16_t* Masks(int group, int64_t block) const {
    return masks_.data() + (group * blocks_ + block) * shape_.key_block;
  }

  void Fill(int64_t tile) {
    std::fill(masks_.begin(), masks_.end(), uint16_t{0});
    std::fill(used_.begin(), used_.end(), false);
    for (int i = 0; i < shape_.queries(); ++i) {
      const int64_t query = tile * shape_.queries() + i;
      if (query >= pattern_.tokens) break;
      uint16_t* masks = masks_.data() + i / shape_.group * blocks_ * shape_.key_block;
      for (const uint32_t key : pattern_.Keys(query)) {
        masks[key] |= static_cast<uint16_t>(1u << (i % shape_.group));
        used_[key / shape_.key_block] = true;
      }
    }
  }

 private:
  const AttentionPattern& pattern_;
  const AttentionTileShape shape_;
  const int64_t blocks_;
  std::vector<uint16_t> masks_;
  std::vector<bool> used_;
};

void AppendEntry(const TileMasks& masks, int64_t block, AttentionTiles& tiles) {
  const AttentionTileShape& shape = tiles.shape;
  const auto octets = [&] { return static_cast<uint32_t>(tiles.lists.size() / kOctet); };
  const uint32_t first = octets();
  const auto full = static_cast<uint16_t>((1u << shape.group) - 1);
  for (int group = 0; group < shape.groups; ++group) {
    const uint16_t* keys = masks.Masks(group, block);
    if (std::all_of(keys, keys + shape.key_block, [&](uint16_t mask) { return mask == full; })) {
      tiles.headers.push_back(AttentionTiles::kFull);
      continue;
    }
    const uint32_t begin = octets();
    AppendList(keys, shape.key_block, tiles.lists);
    tiles.headers.push_back((begin - first) | (octets() - begin) << 16);
  }
  tiles.entries.push_back({static_cast<uint32_t>(block), first, octets() - first});
}

std::vector<uint32_t> ByFallingWork(const AttentionTiles& tiles) {
  std::vector<int64_t> work(tiles.tiles());
  const int full = tiles.shape.key_block / kOctet;
  for (int64_t tile = 0; tile < tiles.tiles(); ++tile) {
    for (uint32_t i = tiles.tile_offsets[tile]; i < tiles.tile_offsets[tile + 1]; ++i) {
      work[tile] += full + tiles.entries[i].octets;  // the block is read whatever is used of it
      for (int group = 0; group < tiles.shape.groups; ++group) {
        if (tiles.headers[i * tiles.shape.groups + group] == AttentionTiles::kFull) work[tile] += full;
      }
    }
  }
  std::vector<uint32_t> order(tiles.tiles());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return work[a] > work[b]; });
  return order;
}

}  // namespace

AttentionTiles AttentionTiles::Cut(const AttentionPattern& pattern, const AttentionTileShape& shape) {
  AttentionTiles tiles;
  tiles.shape = shape;
  tiles.tokens = pattern.tokens;
  tiles.tile_offsets = {0};
  TileMasks masks(pattern, shape);
  for (int64_t tile = 0; tile * shape.queries() < pattern.tokens; ++tile) {
    masks.Fill(tile);
    for (int64_t block = 0; block < masks.blocks(); ++block) {
      if (masks.used(block)) AppendEntry(masks, block, tiles);
    }
    tiles.tile_offsets.push_back(static_cast<uint32_t>(tiles.entries.size()));
  }
  tiles.order = ByFallingWork(tiles);
  return tiles;
}

size_t AttentionTiles::bytes() const {
  return (tile_offsets.size() + headers.size() + lists.size() + order.size()) * sizeof(uint32_t) +
         entries.size() * sizeof(Entry);
}

AttentionPattern AttentionTiles::ToPattern() const {
  std::vector<std::vector<uint32_t>> rows(tokens);
  const auto add = [&](int64_t first_query, uint32_t mask, int64_t key) {
    for (int i = 0; i < shape.group; ++i) {
      if (mask >> i & 1) rows[first_query + i].push_back(static_cast<uint32_t>(key));
    }
  };
  for (int64_t tile = 0; tile < tiles(); ++tile) {
    for (uint32_t i = tile_offsets[tile]; i < tile_offsets[tile + 1]; ++i) {
      const int64_t first_key = int64_t{entries[i].key_block} * shape.key_block;
      for (int group = 0; group < shape.groups; ++group) {
        const int64_t query = tile * shape.queries() + int64_t{group} * shape.group;
        const uint32_t header = headers[int64_t{i} * shape.groups + group];
        if (header == kFull) {
          for (int key = 0; key < shape.key_block; ++key) add(query, ~0u, first_key + key);
          continue;
        }
        const uint32_t begin = (entries[i].first_octet + (header & 0xFFFF)) * kOctet;
        for (uint32_t at = begin; at < begin + (header >> 16) * kOctet; ++at) {
          add(query, lists[at] >> 16, first_key + (lists[at] & 0xFFFF));
        }
      }
    }
  }
  AttentionPattern pattern{.tokens = tokens, .row_offsets = {0}, .col_indices = {}};
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    pattern.col_indices.insert(pattern.col_indices.end(), row.begin(), row.end());
    pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.nnz()));
  }
  return pattern;
}

}  // namespace swizzle
