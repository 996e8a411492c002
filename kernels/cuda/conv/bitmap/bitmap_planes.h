// Sparse convolution's X by bitmaps (Wang et al., "Dual-side Sparse Tensor Core", ISCA 2021, section 5): a plane's rows
// are encoded once, as bits and packed values. Unfolding then moves no values. The word of one tap, of 32 neighbouring
// outputs of one row, is 32 neighbouring bits of the input's row, and its values stand one after the other already:
// bits are shifted, those shifted out are counted, and the count is where the word's values begin.
//
// The paper leaves strides open. Here a row is encoded in as many phases as the window has stride, phase p being
// columns p, p + stride, and so on: a tap reads one phase, and its values are neighbours again. Padding is bits of 0.
//
// Strips are of outputs of one row, the last of a row being shorter: rows of less than 32 outputs waste lanes.
//
// A convolution by such strips can encode its outputs for the next one as they leave (bitmap_product.h): a CTA's tile
// then has whole rows of planes.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PLANES_H_
#define SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PLANES_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/cuda/conv/bitmap/bitmap_operand.h"
#include "kernels/operator/problem.h"

namespace swizzle::cuda {

// Where rows of planes are encoded to. Bits are [line][row_words], a line being [channel][image][row][phase], and a
// line's values stand packed from 32 times its first word on.
struct PlanesTarget {
  uint32_t* bits = nullptr;
  uint16_t* values = nullptr;
  int32_t rows_of_channel = 0;  // images * height
  int32_t width = 0, phases = 1, row_words = 0;
};

// Room for a convolution's input, encoded, and for what unfolding makes of it. Single-owner.
class BitmapPlanes {
 public:
  static size_t Bytes(const Problem& problem);
  // In so many bytes of others, which are aligned as words. For the problem's input and window, of FP16 or BF16 in
  // kRows, whose rows are `stride` elements apart.
  BitmapPlanes(std::byte* memory, const Problem& problem, int64_t stride);
  // In its own, the stride being RowStride.
  static StatusOr<std::unique_ptr<BitmapPlanes>> Make(const Problem& problem);

  // Encodes an input in kRows.
  void QueueEncode(const void* input, cudaStream_t queue);
  // Where the layer before may encode it instead.
  PlanesTarget target() const { return {bits_, values_, images_ * height_, width_, window_.stride_w, row_words_}; }
  // Unfolds what was encoded.
  void QueueUnfold(cudaStream_t queue);
  // What was unfolded.
  BitmapView columns() const;

 private:
  struct Sizes {
    explicit Sizes(const Problem& problem);
    size_t bytes() const;

    int64_t row_words, row_strips, strips, depth;
    size_t words, unfolded;  // of the input's bits, and of what is unfolded
  };

  int32_t channels_ = 0, images_ = 0, height_ = 0, width_ = 0;
  int32_t out_height_ = 0, out_width_ = 0, row_strips_ = 0;
  int64_t stride_ = 0;  // of rows of the input
  int32_t row_words_ = 0;
  Window window_;
  int32_t strips_ = 0, depth_ = 0;
  BitmapWord* words_ = nullptr;
  StripPlace* places_ = nullptr;
  uint32_t* alive_ = nullptr;
  uint32_t* bits_ = nullptr;  // [channel][image][row][phase][row_words_]
  uint16_t* values_ = nullptr;
  std::optional<DeviceArray<std::byte>> owned_;  // freeing even nothing would end a recording
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PLANES_H_
