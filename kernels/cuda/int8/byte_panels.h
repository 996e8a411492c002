// A sparse weight of whole numbers in panels of eight rows, in the order in which tensor cores take it: rows of SR-BCRS
// with vectors of 8 rows as they are, of shorter vectors and of other formats with the columns of all eight. What
// spmm_bytes.h multiplies.
//
// A panel has the columns in which one of its rows is not zero, in steps of 32; the last step is filled with columns
// whose weights are zero, so that no kernel asks whether a column is there. Of 32 columns, "slots" 0 to 31, lane (g, t)
// of a warp (tensor_core/mma.cuh) has row g's weights of slots {2t, 2t + 1, 8 + 2t, 9 + 2t} and of the same 16 later:
// two words of four bytes, one byte after the other.
//
// Weights of 16 and 12 bits are two digits to a base of 256, the upper one signed, the lower one not: -19 in 16 bits is
// -1 * 256 + 237. Digits of 8 bits take the two words of a lane, those of 4 bits one, the first word's in the lower
// halves of its bytes: a step is [digit, the lower first][lane][words].
//
// Column numbers are 16 bits, slot s being number s % 4 * 8 + s / 4 of its step: a lane whose copies go to slots q,
// q + 4, q + 8, ... reads 16 bytes. Any order of columns is right. Where a tile of X lies in shared memory, eight slots
// from a multiple of 8 on are read at once, without conflicts if their columns differ in the lowest three bits, so that
// columns are dealt out accordingly.
//
// Worked example, eight rows of 4 columns of which column 1 is zero, in 8 bits: one panel of one step, slots 0 to 2
// being columns 0, 2 and 3, all others numbers of columns with zeros; lane (g, 0) has the bytes w[g][0] w[g][2] 0 0 and
// 0 0 0 0, lane (g, 1) w[g][3] 0 0 0 and 0 0 0 0, others zeros.
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_BYTE_PANELS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_BYTE_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/sr_bcrs.h"

namespace swizzle::cuda {

struct alignas(16) BytePanel {
  uint32_t step;   // its first
  uint32_t steps;  // 0 where all of its rows are zero
  uint32_t row;    // its first
  uint32_t spare;
};

struct WholeEntry {
  int32_t column;
  int32_t value;
};

// The host's side.
struct PackedPanels {
  std::vector<BytePanel> panels;  // the longest first
  std::vector<uint16_t> columns;
  std::vector<uint8_t> weights;
};

class BytePanels {
 public:
  static constexpr int kRows = 8;
  static constexpr int kStep = 32;  // columns
  static constexpr int64_t kMostColumns = int64_t{1} << 16;

  // Bytes of a step of weights of 4, 8, 12 or 16 bits.
  static constexpr int StepBytes(int bits) { return kRows * kStep * bits / 8; }
  // Of a digit of 8 bits, the byte in its step.
  static constexpr int PlaceInStep(int row, int slot) {
    return (row * 4 + slot % 8 / 2) * 8 + slot / 16 * 4 + slot % 16 / 8 * 2 + slot % 2;
  }

  // Of the entries of each row, in any order. REQUIRES: bits is 4, 8, 12 or 16 and every value fits; 0 < cols <=
  // kMostColumns, and columns are below.
  static PackedPanels Pack(std::span<const std::vector<WholeEntry>> rows, int64_t cols, int bits);
  static StatusOr<std::unique_ptr<BytePanels>> Make(std::span<const std::vector<WholeEntry>> rows, int64_t cols,
                                                    int bits);
  static StatusOr<std::unique_ptr<BytePanels>> Upload(const PackedPanels& packed, int64_t rows, int64_t cols, int bits);
  // Of a matrix whose values are whole numbers; INVALID_ARGUMENT where one is none of so many bits, or there are too
  // many columns or none.
  static StatusOr<std::unique_ptr<BytePanels>> Make(const SrBcrsMatrix& matrix, int bits);

  size_t bytes() const { return panels_.bytes() + columns_.bytes() + weights_.bytes(); }
  int64_t count() const { return static_cast<int64_t>(panels_.size()); }
  int64_t steps() const { return static_cast<int64_t>(columns_.size()) / kStep; }  // of all panels
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int bits() const { return bits_; }
  const BytePanel* panels() const { return panels_.data(); }
  const uint16_t* columns() const { return columns_.data(); }
  const uint8_t* weights() const { return weights_.data(); }

 private:
  BytePanels() = default;

  int64_t rows_ = 0, cols_ = 0;
  int bits_ = 8;
  DeviceArray<BytePanel> panels_;
  DeviceArray<uint16_t> columns_;
  DeviceArray<uint8_t> weights_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_BYTE_PANELS_H_
