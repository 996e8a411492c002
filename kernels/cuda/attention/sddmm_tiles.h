// Sampled dense-dense matrix product (sddmm.h) where a pattern is dense in places: tiles that hold enough nonzeros are
// multiplied whole on tensor cores and sampled from shared memory, the other nonzeros go by rows.
//
// A tile's product costs the same whatever it holds, a nonzero by itself a row of b. So a banded pattern's tiles near
// the diagonal are worth it: of Sputnik's sparse Transformer 81 % of the nonzeros lie in the 30 % of the triangle that
// is nearer than 2,048.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_TILES_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_TILES_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/sddmm.h"

namespace swizzle::cuda {

// A pattern, cut: every nonzero is in a list or among the others. Value type.
struct SddmmTiles {
  static constexpr int kQueries = 128, kKeys = 64;  // of a tile
  static constexpr int kGroups = 8;                 // of a tile's queries; each has a list of its own
  static constexpr int kGroupQueries = kQueries / kGroups;
  static constexpr int kMostTiles = 16;  // that a thread block works on

  // Tiles of the same queries, keys rising.
  struct Work {
    uint32_t query_block;
    uint32_t first_tile;
    uint32_t tiles;
  };

  std::vector<Work> work;              // the longest first
  std::vector<uint32_t> key_blocks;    // [tiles]
  std::vector<uint32_t> list_offsets;  // [tiles * kGroups + 1]
  // Nonzeros as `query of the group << 6 | key of the tile`, both rising. Entry i of its list has the place i +
  // bases[tile][query of the tile], modulo 2^32, among the pattern's col_indices.
  std::vector<uint16_t> lists;
  std::vector<uint32_t> bases;         // [tiles][kQueries]
  std::vector<uint32_t> rest_offsets;  // [tokens + 1]
  std::vector<uint32_t> rest_keys;     // by row
  std::vector<uint32_t> rest_places;   // among the pattern's col_indices

  // Makes tiles of those with `least` nonzeros or more. REQUIRES: pattern.Validate() is OK; least >= 1.
  static SddmmTiles Cut(const AttentionPattern& pattern, int64_t least);
};

// Whether the current device has what multiplies tiles, Hopper's products.
bool MultipliesSddmmTiles();

// Immutable. Lives on the device that was current when it was made.
class DeviceSddmmTiles {
 public:
  DeviceSddmmTiles() = default;  // no tiles
  static StatusOr<DeviceSddmmTiles> Make(const SddmmTiles& tiles);
  // Those that are worth it; none where the device does not multiply them, or FP32 has more than 341 heads. REQUIRES:
  // pattern.Validate() is OK.
  static StatusOr<DeviceSddmmTiles> MakeBest(const AttentionPattern& pattern, DType dtype, int heads);

  int64_t work_count() const { return static_cast<int64_t>(work_.size()); }
  const SddmmTiles::Work* work() const { return work_.data(); }
  const uint32_t* key_blocks() const { return key_blocks_.data(); }
  const uint32_t* list_offsets() const { return list_offsets_.data(); }
  const uint16_t* lists() const { return lists_.data(); }
  const uint32_t* bases() const { return bases_.data(); }
  bool has_rest() const { return rest_keys_.size() > 0; }
  SampledRows rest() const { return {rest_offsets_.data(), rest_keys_.data(), rest_places_.data()}; }
  size_t bytes() const {
    return work_.bytes() + key_blocks_.bytes() + list_offsets_.bytes() + lists_.bytes() + bases_.bytes() +
           rest_offsets_.bytes() + rest_keys_.bytes() + rest_places_.bytes();
  }

 private:
  DeviceArray<SddmmTiles::Work> work_;
  DeviceArray<uint16_t> lists_;
  DeviceArray<uint32_t> key_blocks_, list_offsets_, bases_, rest_offsets_, rest_keys_, rest_places_;
};

// FP32 splits its operands into FP16 parts there (split_operands.h); more than 341 heads have no tiles, and need none.
size_t SddmmWorkspaceBytes(DType dtype, int head_dim, int heads, int64_t tokens);

// As Sddmm, of finite operands. FP32's tiles go as three FP16 products of scaled parts (operand.cuh). `tiles` are of
// this pattern, or none. REQUIRES: tiles only where MultipliesSddmmTiles; a workspace of SddmmWorkspaceBytes, aligned
// to 16.
void SddmmByTiles(const SddmmArgs& args, const DeviceAttentionPattern& pattern, const DeviceSddmmTiles& tiles,
                  std::span<std::byte> workspace, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SDDMM_TILES_H_
