// A sparse weight whose rows share columns (kernels/format/shfl_bw.h), in groups of 64 rows, in the order in which
// tensor cores take it from shared memory. What conv_shfl_bw.h multiplies.
//
// A group has the columns in which one of its rows is nonzero, in steps of 16; the last step repeats a column with
// zeros, so that no kernel asks whether a column is there. A step's weights are 64 rows by 16 columns in matrices of 8
// rows by 16 bytes, those of columns 0 to 7 before those of columns 8 to 15, and rows rising in each: 2 KiB, which one
// copy brings. Two steps are a stage.
//
// Columns are 16-bit numbers in the order in which four warps copy them: of each stage [warp 4][8], the 32 columns
// c being number c / 4 of warp c % 4. Four stages are a chunk, the last of a group being padded.
//
// FP32 weights are there as FP16 parts (half_parts.h), for X as its upper parts and then, in as many rows again, its
// rests: a step of upper parts and of rows of upper parts is followed by one of rests and of the same columns' rests.
//
// Vectors of 64 rows fill groups, longer ones fill several; of shorter ones a group has the columns of all. Two
// neighbours with the same columns are a pair, where all groups are in pairs: one gathering of X serves both. The
// second one's weights and places follow those of the first.
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_ROW_GROUPS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_ROW_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernels/base/dtype.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/shfl_bw.h"

namespace swizzle::cuda {

struct alignas(16) RowGroup {
  uint32_t weights;  // its first step
  uint32_t columns;  // its first chunk
  uint32_t steps;    // at least 1
  uint32_t place;    // of its first row, in `rows`
};

// Whether all groups of so many rows in vectors are in pairs.
bool HasRowPairs(int64_t rows, int64_t vector_rows);

class RowGroups {
 public:
  static constexpr int kRows = 64;
  static constexpr int kStep = 16;           // columns
  static constexpr int kStage = 2 * kStep;   // likewise
  static constexpr int kChunk = 4 * kStage;  // likewise
  static constexpr int64_t kMostColumns = int64_t{1} << 16;

  // Of FP16 or BF16. REQUIRES: at most kMostColumns columns, at least one.
  static StatusOr<std::unique_ptr<RowGroups>> Make(const ShflBwMatrix& matrix, std::span<const float> bias,
                                                   DType dtype);
  // Of parts. REQUIRES: at most half as many columns.
  static StatusOr<std::unique_ptr<RowGroups>> MakeParts(const ShflBwMatrix& matrix, std::span<const float> bias);

  size_t bytes() const {
    return weights_.bytes() + columns_.bytes() + groups_.bytes() + pairs_.bytes() + rows_.bytes() + bias_.bytes() +
           inverses_.bytes();
  }
  int64_t count() const { return static_cast<int64_t>(groups_.size()); }
  int64_t steps() const { return static_cast<int64_t>(weights_.size()) / (kRows * kStep); }  // of all groups
  const uint16_t* weights() const { return weights_.data(); }
  const uint16_t* columns() const { return columns_.data(); }
  const RowGroup* groups() const { return groups_.data(); }  // the longest first
  // The first group of each pair, the longest first; none where not all groups are in pairs.
  int64_t pair_count() const { return static_cast<int64_t>(pairs_.size()); }
  const RowGroup* pairs() const { return pairs_.data(); }
  const int32_t* rows() const { return rows_.data(); }        // of each place, the row of Y; -1 past the last
  const float* bias() const { return bias_.data(); }          // of each place, zero if the layer has none
  const float* inverses() const { return inverses_.data(); }  // of each place, undo its scale; null but of parts

 private:
  RowGroups() = default;
  static StatusOr<std::unique_ptr<RowGroups>> Packed(const ShflBwMatrix& matrix, std::span<const float> bias,
                                                     std::optional<DType> dtype);

  DeviceArray<uint16_t> weights_, columns_;
  DeviceArray<RowGroup> groups_, pairs_;
  DeviceArray<int32_t> rows_;
  DeviceArray<float> bias_, inverses_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_ROW_GROUPS_H_
