// A sparse weight in the order of the operands of tensor cores, for conv_csr_wgmma.h and conv_csr_parts.h: blocks of 16
// rows by 16 columns, each with a bit for every place and its nonzeros one after the other (as in SpInfer, Fan et al.,
// EuroSys 2025).
//
// A block is four matrices of 8 by 8: rows 0 to 7 and 8 to 15 of columns 0 to 7, then of columns 8 to 15. A half of a
// matrix, four rows, has 32 bits, row by row, and says where its entries begin. So lane l of a warp, whose operands are
// places 2l and 2l + 1 of each matrix, finds them by counting the bits before them. That is 0.25 bytes a place and four
// an entry: 0.65 bytes a place at 90 % zeros, where dense FP32 has four.
//
// An entry is its row's largest magnitude's share: multiplied by the power of two that brings that largest to 2^14, and
// then the sum of two FP16 numbers, upper part and rest (operand.cuh says what that loses).
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_CSR_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_CSR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/csr.h"

namespace swizzle::cuda {

// Of half a matrix of 8 by 8.
struct FragmentHalf {
  uint32_t places;  // bit 8 * row + column
  uint32_t begin;   // of its entries
};

class FragmentCsr {
 public:
  static constexpr int kBlock = 16;       // rows and columns
  static constexpr int kRowUnit = 128;    // rows are padded to a multiple of it, without entries
  static constexpr int kColumnUnit = 64;  // likewise columns

  static StatusOr<std::unique_ptr<FragmentCsr>> Make(const CsrMatrix& matrix, std::span<const float> bias);

  size_t bytes() const { return halves_.bytes() + entries_.bytes() + inverses_.bytes() + bias_.bytes(); }
  int64_t rows() const { return rows_; }  // without padding
  int64_t cols() const { return cols_; }
  int64_t steps() const { return steps_; }                       // blocks of a row of blocks
  const FragmentHalf* halves() const { return halves_.data(); }  // [rows of blocks][steps][halves 2][matrices 4]
  const uint32_t* entries() const { return entries_.data(); }    // upper part in the lower 16 bits
  const float* inverses() const { return inverses_.data(); }     // [rows, padded]: undo the scale
  const float* bias() const { return bias_.data(); }             // likewise, zero if the layer has none

 private:
  FragmentCsr() = default;

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t steps_ = 0;
  DeviceArray<FragmentHalf> halves_;
  DeviceArray<uint32_t> entries_;
  DeviceArray<float> inverses_;
  DeviceArray<float> bias_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_CSR_H_
