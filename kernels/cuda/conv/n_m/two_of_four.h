// A 2:4 sparse weight (kernels/format/n_m.h) as sparse tensor cores take it from shared memory. What conv_n_m.h
// multiplies.
//
// Rows come in tiles of 128, columns in stages of 64; both are padded with zeros. A stage of a tile is 9 KiB, which one
// copy brings: of each 32 columns (a step) and 64 rows the 16 values that are left of a row, in matrices of 8 rows by
// 16 bytes, those of values 0 to 7 before those of values 8 to 15, and rows rising in each; after the stage's four such
// blocks the places, 64 words a block in the same order. Word 2g + h of the 16 of a warp's 16 rows has columns 16h to
// 16h + 15 of row g, four bits a group of four columns, and above them of row g + 8 (PTX ISA, "Sparse wgmma").
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_N_M_TWO_OF_FOUR_H_
#define SWIZZLE_KERNELS_CUDA_CONV_N_M_TWO_OF_FOUR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/base/dtype.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/n_m.h"

namespace swizzle::cuda {

class TwoOfFour {
 public:
  static constexpr int kRows = 128;                           // of a tile
  static constexpr int kStep = 32, kStage = 2 * kStep;        // columns
  static constexpr int kBlockRows = 64;                       // of a block: what a warpgroup multiplies
  static constexpr int kBlocks = kRows / kBlockRows * 2;      // of a stage
  static constexpr int kBlockWords = kBlockRows * kStep / 4;  // of values
  static constexpr int kPlaceWords = 64;                      // of a block
  static constexpr int kStageWords = kBlocks * (kBlockWords + kPlaceWords);

  // Of FP16 or BF16. REQUIRES: n = 2, m = 4, one tap; at least one row and column.
  static StatusOr<std::unique_ptr<TwoOfFour>> Make(const NOfMMatrix& matrix, std::span<const float> bias, DType dtype);

  size_t bytes() const { return words_.bytes() + bias_.bytes(); }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t tiles() const { return tiles_; }
  int64_t stages() const { return stages_; }               // of a tile
  const uint32_t* words() const { return words_.data(); }  // tile by tile
  const float* bias() const { return bias_.data(); }       // zero if the layer has none; padded

 private:
  TwoOfFour() = default;

  int64_t rows_ = 0, cols_ = 0, tiles_ = 0, stages_ = 0;
  DeviceArray<uint32_t> words_;
  DeviceArray<float> bias_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_N_M_TWO_OF_FOUR_H_
