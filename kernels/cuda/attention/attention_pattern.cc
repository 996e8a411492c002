#include "kernels/cuda/attention/attention_pattern.h"

#include <vector>

#include "kernels/base/integers.h"

namespace swizzle::cuda {

StatusOr<DeviceAttentionPattern> DeviceAttentionPattern::Make(const AttentionPattern& pattern) {
  using Array = DeviceArray<uint32_t>;
  std::vector<uint32_t> long_rows;
  for (int64_t row = 0; row < pattern.tokens; ++row) {
    if (static_cast<int64_t>(pattern.Keys(row).size()) > kLongRow) long_rows.push_back(static_cast<uint32_t>(row));
  }
  DeviceAttentionPattern device;
  device.tokens_ = pattern.tokens;
  device.nnz_ = pattern.nnz();
  SWIZZLE_ASSIGN_OR_RETURN(device.row_offsets_, Array::Upload(pattern.row_offsets));
  SWIZZLE_ASSIGN_OR_RETURN(device.col_indices_, Array::Upload(pattern.col_indices));
  SWIZZLE_ASSIGN_OR_RETURN(device.bundles_, Array::Upload(BundleSwizzle(pattern, kBundleRows)));
  SWIZZLE_ASSIGN_OR_RETURN(device.long_rows_, Array::Upload(long_rows));
  return device;
}

StatusOr<DeviceAttentionTiles> DeviceAttentionTiles::Make(const AttentionTiles& tiles) {
  using Array = DeviceArray<uint32_t>;
  DeviceAttentionTiles device;
  device.shape_ = tiles.shape;
  device.tokens_ = tiles.tokens;
  SWIZZLE_ASSIGN_OR_RETURN(device.tile_offsets_, Array::Upload(tiles.tile_offsets));
  SWIZZLE_ASSIGN_OR_RETURN(device.entries_, DeviceArray<AttentionTiles::Entry>::Upload(tiles.entries));
  SWIZZLE_ASSIGN_OR_RETURN(device.headers_, Array::Upload(tiles.headers));
  SWIZZLE_ASSIGN_OR_RETURN(device.lists_, Array::Upload(tiles.lists));
  SWIZZLE_ASSIGN_OR_RETURN(device.order_, Array::Upload(tiles.order));
  return device;
}

StatusOr<std::unique_ptr<PackedWeight>> DeviceAttentionBits::Make(const AttentionPattern& pattern) {
  auto device = std::make_unique<DeviceAttentionBits>();
  device->words_ = static_cast<int>(CeilDiv(pattern.tokens, 64) * 2);
  std::vector<uint32_t> bits(static_cast<size_t>(pattern.tokens * device->words_));
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (uint32_t key : pattern.Keys(query)) bits[query * device->words_ + key / 32] |= 1u << (key % 32);
  }
  SWIZZLE_ASSIGN_OR_RETURN(device->bits_, DeviceArray<uint32_t>::Upload(bits));
  return device;
}

}  // namespace swizzle::cuda
