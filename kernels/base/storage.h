// How an activation is stored: its layout, and the type of its elements. Plain values.
#ifndef SWIZZLE_KERNELS_BASE_STORAGE_H_
#define SWIZZLE_KERNELS_BASE_STORAGE_H_

#include <compare>
#include <cstddef>

#include "kernels/base/dtype.h"
#include "kernels/base/layout.h"

namespace swizzle {

struct Storage {
  Layout layout = Layout::kNchw;
  DType dtype = DType::kFloat32;
  bool pooled = false;  // in its place stands what a max pooling (PooledExtent) makes of it, which alone reads it
  auto operator<=>(const Storage&) const = default;  // NOLINT(modernize-use-nullptr): the compiler writes what it means
};

// How values of `dtype` are stored in a layout. Requests and results are FP32, and so is what oneDNN computes: kNchw
// and kBlocked16 have no other type.
constexpr Storage StorageIn(Layout layout, DType dtype) {
  const bool always_float = layout == Layout::kNchw || layout == Layout::kBlocked16;
  return {layout, always_float ? DType::kFloat32 : dtype};
}

// What requests bring of token sequences, which kEmbedding alone reads: ids instead of activations.
inline constexpr Storage kIdStorage = {Layout::kNchw, DType::kInt32};

// What max pooling of 3x3 windows, 2 apart and the first with 1 of padding, makes of an activation.
constexpr Extent PooledExtent(const Extent& extent) {
  return {extent.batch, extent.channels, (extent.height - 1) / 2 + 1, (extent.width - 1) / 2 + 1};
}

// Of a buffer of this extent, padding included.
inline size_t StorageBytes(const Extent& extent, Storage storage) {
  const Extent stored = storage.pooled ? PooledExtent(extent) : extent;
  return static_cast<size_t>(LayoutElements(stored, storage.layout)) * ElementBytes(storage.dtype);
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_STORAGE_H_
