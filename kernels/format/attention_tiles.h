// An attention pattern cut for tensor cores: for each small group of queries and each block of keys, which keys any of
// its queries attends to, with a mask of the queries. Value type.
//
// `group` neighbouring queries (8 or 16) are what one warp multiplies at once; `groups` of them make a tile, which
// reads a block of `key_block` keys together. Of a block, a group multiplies only the keys in its list, gathered: with
// keys drawn at random a tile of 64x64 is never empty, but the union of 8 queries leaves out most keys of it. Empty
// pairs of tile and block are not stored; a group all of whose queries attend to all keys of a block has no list
// (kFull).
//
// A list is made of octets, an even number of them: 8 entries `key | mask << 16`, key counted from the block's first,
// bit i of the mask for the group's query i. Where it can be, the entry at position i of an octet has a key that is i
// modulo 8: its row then lies in other banks of shared memory than those of the other seven. Spare entries have the
// mask 0 and a key with that property.
//
// Worked example, group 8, groups 1, key_block 16, tokens 16, keys 1, 9, 10 for query 0 and key 2 for query 8: tile 0
// has one entry, block 0, of two octets: positions 1 (key 1), 2 (key 10) and, of the second octet, 1 (key 9), all with
// mask 1; tile 1 one entry of two octets: position 2, key 2, mask 1.
//
// Each entry and pair of octets holds a nonzero: memory is linear in the nonzeros, at most 64 bytes a pair and
// 16 + 4 * groups bytes an entry.
#ifndef SWIZZLE_KERNELS_FORMAT_ATTENTION_TILES_H_
#define SWIZZLE_KERNELS_FORMAT_ATTENTION_TILES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/format/attention_pattern.h"

namespace swizzle {

struct AttentionTileShape {
  int group = 8;       // queries: 8 or 16
  int groups = 16;     // of a tile
  int key_block = 64;  // 64 or 128
  int queries() const { return group * groups; }
  bool operator==(const AttentionTileShape&) const = default;
};

struct AttentionTiles {
  static constexpr int kOctet = 8;
  static constexpr uint32_t kFull = 1u << 31;

  struct Entry {
    uint32_t key_block;
    uint32_t first_octet;  // of the lists of all groups, which lie one after the other
    uint32_t octets;
    uint32_t reserved = 0;
  };

  AttentionTileShape shape;
  int64_t tokens = 0;
  std::vector<uint32_t> tile_offsets;  // [tiles + 1], into entries
  std::vector<Entry> entries;          // by tile, blocks rising
  std::vector<uint32_t> headers;       // [entries * groups]: first octet from the entry's, octets << 16; or kFull
  std::vector<uint32_t> lists;         // [octets * 8]
  std::vector<uint32_t> order;         // tiles by falling work

  int64_t tiles() const { return static_cast<int64_t>(tile_offsets.size()) - 1; }
  size_t bytes() const;
  // REQUIRES: pattern.Validate() is OK, a shape of the values above.
  static AttentionTiles Cut(const AttentionPattern& pattern, const AttentionTileShape& shape);
  // The pattern again.
  AttentionPattern ToPattern() const;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_ATTENTION_TILES_H_
