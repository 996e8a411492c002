#include "kernels/cuda/conv/csr/fragment_csr.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/operands/half_parts.h"

namespace swizzle::cuda {
namespace {

constexpr int kHalvesOfBlock = 8;

// Builds the host's side of one weight.
class Packer {
 public:
  explicit Packer(const CsrMatrix& matrix)
      : matrix_(matrix),
        rows_(RoundUp(matrix.rows, FragmentCsr::kRowUnit)),
        steps_(RoundUp(matrix.cols, FragmentCsr::kColumnUnit) / FragmentCsr::kBlock),
        halves(rows_ / FragmentCsr::kBlock * steps_ * kHalvesOfBlock),
        entries(matrix.nnz()),
        inverses(rows_) {
    ForEachEntry([&](FragmentHalf& half, uint32_t bit, int64_t) { half.places |= 1u << bit; });
    uint32_t begin = 0;
    for (size_t block = 0; block < halves.size(); block += kHalvesOfBlock) {
      for (int i = 0; i < kHalvesOfBlock; ++i) {  // both halves of a matrix are neighbours
        FragmentHalf& half = halves[block + i % 2 * 4 + i / 2];
        half.begin = begin, begin += std::popcount(half.places);
      }
    }
    std::vector<RowFit> fits(matrix.rows);
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const uint32_t first = matrix.row_offsets[row], count = matrix.row_offsets[row + 1] - first;
      for (const float value : std::span(matrix.values).subspan(first, count)) fits[row].See(value);
      inverses[row] = fits[row].inverse();
    }
    int64_t row = 0;
    ForEachEntry([&](const FragmentHalf& half, uint32_t bit, int64_t entry) {
      while (entry >= matrix.row_offsets[row + 1]) ++row;
      const uint32_t before = std::popcount(half.places & ((1u << bit) - 1));
      const HalfParts parts = fits[row].PartsOf(matrix.values[entry]);
      entries[half.begin + before] = parts.upper | uint32_t{parts.rest} << 16;
    });
  }

 private:
  // Calls f(its half matrix, its bit there, its index), row by row.
  template <typename F>
  void ForEachEntry(F&& f) {
    for (int64_t row = 0; row < matrix_.rows; ++row) {
      for (int64_t i = matrix_.row_offsets[row]; i < matrix_.row_offsets[row + 1]; ++i) {
        const int64_t column = matrix_.col_indices[i], block = row / 16 * steps_ + column / 16;
        const int64_t half = row % 8 / 4, matrix = column % 16 / 8 * 2 + row % 16 / 8;
        f(halves[block * kHalvesOfBlock + half * 4 + matrix], static_cast<uint32_t>(row % 4 * 8 + column % 8), i);
      }
    }
  }

  const CsrMatrix& matrix_;
  const int64_t rows_, steps_;

 public:
  std::vector<FragmentHalf> halves;
  std::vector<uint32_t> entries;
  std::vector<float> inverses;
};

}  // namespace

StatusOr<std::unique_ptr<FragmentCsr>> FragmentCsr::Make(const CsrMatrix& matrix, std::span<const float> bias) {
  const Packer packer(matrix);
  std::vector<float> biases(packer.inverses.size());
  std::copy(bias.begin(), bias.end(), biases.begin());
  std::unique_ptr<FragmentCsr> packed(new FragmentCsr);
  packed->rows_ = matrix.rows;
  packed->cols_ = matrix.cols;
  packed->steps_ = RoundUp(matrix.cols, kColumnUnit) / kBlock;
  SWIZZLE_ASSIGN_OR_RETURN(packed->halves_, DeviceArray<FragmentHalf>::Upload(packer.halves));
  SWIZZLE_ASSIGN_OR_RETURN(packed->entries_, DeviceArray<uint32_t>::Upload(packer.entries));
  SWIZZLE_ASSIGN_OR_RETURN(packed->inverses_, DeviceArray<float>::Upload(packer.inverses));
  SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<float>::Upload(biases));
  return packed;
}

}  // namespace swizzle::cuda
