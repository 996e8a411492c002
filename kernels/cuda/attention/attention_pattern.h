// An attention pattern in device memory, and how the heads of queries, keys, values and outputs lie there.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PATTERN_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/format/attention_tiles.h"

namespace swizzle::cuda {

// One [tokens, head dim] matrix a head; strides in elements. Rows and strides are multiples of 16 bytes: [tokens][heads
// * head dim] (kNhwc of tokens) has the strides {channels, head dim}, [heads][tokens][head dim] {head dim, tokens *
// head dim}. Elements beyond a head's rows are not touched.
struct HeadMatrices {
  const void* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};
struct MutableHeadMatrices {
  void* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
};

// Rows of a bundle are worked on by one thread block (see BundleSwizzle).
inline constexpr int kBundleRows = 32;
// Rows longer than this are worked on by a whole thread block in the sparse softmax.
inline constexpr int64_t kLongRow = 1000;

// Immutable. Lives on the device that was current when it was made.
class DeviceAttentionPattern {
 public:
  // REQUIRES: pattern.Validate() is OK.
  static StatusOr<DeviceAttentionPattern> Make(const AttentionPattern& pattern);

  int64_t tokens() const { return tokens_; }
  int64_t nnz() const { return nnz_; }
  // From the values of one head to those of the next: nnz, rounded up so that every head starts on 16 bytes.
  int64_t value_stride() const { return ValueStride(nnz_); }
  static constexpr int64_t ValueStride(int64_t nnz) { return RoundUp(nnz, 8); }
  const uint32_t* row_offsets() const { return row_offsets_.data(); }
  const uint32_t* col_indices() const { return col_indices_.data(); }
  const uint32_t* bundles() const { return bundles_.data(); }
  int64_t bundle_count() const { return static_cast<int64_t>(bundles_.size()); }
  const uint32_t* long_rows() const { return long_rows_.data(); }
  int64_t long_row_count() const { return static_cast<int64_t>(long_rows_.size()); }
  size_t bytes() const { return row_offsets_.bytes() + col_indices_.bytes() + bundles_.bytes() + long_rows_.bytes(); }

 private:
  int64_t tokens_ = 0, nnz_ = 0;
  DeviceArray<uint32_t> row_offsets_, col_indices_, bundles_, long_rows_;
};

// Likewise of AttentionTiles.
class DeviceAttentionTiles {
 public:
  static StatusOr<DeviceAttentionTiles> Make(const AttentionTiles& tiles);

  const AttentionTileShape& shape() const { return shape_; }
  int64_t tokens() const { return tokens_; }
  int64_t tiles() const { return static_cast<int64_t>(order_.size()); }
  const uint32_t* tile_offsets() const { return tile_offsets_.data(); }
  const AttentionTiles::Entry* entries() const { return entries_.data(); }
  const uint32_t* headers() const { return headers_.data(); }
  const uint32_t* lists() const { return lists_.data(); }
  const uint32_t* order() const { return order_.data(); }
  size_t bytes() const {
    return tile_offsets_.bytes() + entries_.bytes() + headers_.bytes() + lists_.bytes() + order_.bytes();
  }

 private:
  AttentionTileShape shape_;
  int64_t tokens_ = 0;
  DeviceArray<uint32_t> tile_offsets_, headers_, lists_, order_;
  DeviceArray<AttentionTiles::Entry> entries_;
};

// A bit for every pair of a query and a key, for dense attention. Immutable.
class DeviceAttentionBits final : public PackedWeight {
 public:
  // REQUIRES: pattern.Validate() is OK.
  static StatusOr<std::unique_ptr<PackedWeight>> Make(const AttentionPattern& pattern);

  // [query][words()]: bit i of word w is key 32 w + i. Rows are whole 64 keys.
  const uint32_t* bits() const { return bits_.data(); }
  int words() const { return words_; }
  size_t bytes() const override { return bits_.bytes(); }

 private:
  int words_ = 0;
  DeviceArray<uint32_t> bits_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PATTERN_H_
