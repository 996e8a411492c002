// Operands of products that are sparse on both sides (bitmap_product.h), in device memory: bitmaps over packed 16-bit
// values, after kernels/format/bitmap.h. W is cut into strips of 32 rows, X into strips of 32 columns. For every strip
// and every k there is a word, whose bit i is set where the strip's i-th row or column is not zero, and the place of
// its first value: the prefixes that the format implies are stored here, since blocks begin anywhere. Which words are
// not 0 stands in a bitmap of its own, the level above: what a product skips is read there, 32 k at a time.
//
// A view is of memory that others own. The owners are single-owner; views may be used concurrently.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_OPERAND_H_
#define SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_OPERAND_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernels/base/dtype.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/bitmap.h"

namespace swizzle::cuda {

inline constexpr int kStripLanes = 32;      // rows or columns of a strip
inline constexpr int kStripDepthUnit = 32;  // depths are padded to a multiple of it, with words of 0
inline constexpr int kStripsUnit = 4;       // likewise numbers of strips
inline constexpr int kValuesUnit = 4;       // values of a word begin at a multiple of it, where places are null
inline constexpr int kValuesAhead = 8;      // values more may be read than there are

struct BitmapWord {
  uint32_t bits;
  uint32_t first;  // of its values
};

// The columns of a strip of X that are columns of Y.
struct StripPlace {
  int32_t first;
  int32_t count;  // 0 to kStripLanes
};

struct BitmapView {
  const BitmapWord* words;  // [strips][depth]
  const uint32_t* alive;    // [strips][depth / 32], bit k % 32 of word k / 32: words[k].bits is not 0
  const uint16_t* values;
  const StripPlace* places;  // of X: [strips]; null: strip s is columns 32 s and on
  int32_t strips;
  int32_t depth;
};

// A weight. Immutable.
class BitmapStrips {
 public:
  // Of FP16 or BF16.
  static StatusOr<std::unique_ptr<BitmapStrips>> Make(const BitmapMatrix& matrix, std::span<const float> bias,
                                                      DType dtype);

  size_t bytes() const { return words_.bytes() + alive_.bytes() + values_.bytes() + bias_.bytes(); }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  BitmapView view() const { return {words_.data(), alive_.data(), values_.data(), nullptr, strips_, depth_}; }
  const float* bias() const { return bias_.data(); }  // of every row of every strip; zero if the layer has none

 private:
  BitmapStrips() = default;

  int64_t rows_ = 0, cols_ = 0;
  int32_t strips_ = 0, depth_ = 0;
  DeviceArray<BitmapWord> words_;
  DeviceArray<uint32_t> alive_;
  DeviceArray<uint16_t> values_;
  DeviceArray<float> bias_;
};

// Room for activations, or for what a product writes for the next one: as much as there can be, since their zeros are
// only known when they come. The values of 32 k of a strip begin at a place that depends on no others, so that all are
// encoded at once. REQUIRES: depth, padded, times strips of 32 is below 2^32.
class BitmapActivations {
 public:
  static size_t Bytes(int64_t depth, int64_t strips);
  // In so many bytes of others, which are aligned as words.
  BitmapActivations(std::byte* memory, int64_t depth, int64_t strips);
  // In its own.
  static StatusOr<std::unique_ptr<BitmapActivations>> Make(int64_t depth, int64_t strips);

  BitmapView view() const { return {words_, alive_, values_, nullptr, strips_, depth_}; }
  BitmapWord* words() { return words_; }
  uint32_t* alive() { return alive_; }
  uint16_t* values() { return values_; }
  int32_t strips() const { return strips_; }
  int32_t depth() const { return depth_; }

 private:
  int32_t strips_ = 0, depth_ = 0;
  BitmapWord* words_ = nullptr;
  uint32_t* alive_ = nullptr;
  uint16_t* values_ = nullptr;
  std::optional<DeviceArray<std::byte>> owned_;  // freeing even nothing would end a recording
};

// Encodes `columns` of X's `rows` rows, which are `stride` 16-bit elements apart. Negative zeros are zeros. REQUIRES:
// `to` was made for them.
void QueueEncode(const void* x, int64_t rows, int64_t columns, int64_t stride, BitmapActivations& to,
                 cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_OPERAND_H_
