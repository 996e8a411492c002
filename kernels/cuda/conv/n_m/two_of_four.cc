#include "kernels/cuda/conv/n_m/two_of_four.h"

#include <algorithm>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"

namespace swizzle::cuda {
namespace {

using T = TwoOfFour;

// A block's values of no group: zeros in places 0 and 1, which are as good as any that rise.
constexpr uint32_t kNoPlaces = 0x44444444;

// Entry `entry` of a row is value entry % 2 of its group of four columns.
void AddEntry(const NOfMMatrix& matrix, int64_t row, int64_t entry, DType dtype, std::span<uint32_t> stage) {
  const int64_t at = row * matrix.entries_of_row() + entry;
  const float value = matrix.values[at];
  const uint32_t bits = HalfBits(value, dtype);
  const int64_t in_stage = entry % (T::kStage / 2), step = in_stage / (T::kStep / 2), kept = in_stage % (T::kStep / 2);
  const int64_t block = step * (T::kRows / T::kBlockRows) + row % T::kRows / T::kBlockRows, r = row % T::kBlockRows;
  const int64_t half = kept / 8 * (T::kBlockRows * 8) + r * 8 + kept % 8;
  stage[block * T::kBlockWords + half / 2] |= bits << (half % 2 * 16);

  const int64_t word = r / 16 * 16 + r % 8 * 2 + kept / 8, shift = r % 16 / 8 * 16 + kept % 8 * 2;
  uint32_t& places = stage[T::kBlocks * T::kBlockWords + block * T::kPlaceWords + word];
  places = (places & ~(3u << shift)) | static_cast<uint32_t>(matrix.Place(at)) << shift;
}

std::vector<uint32_t> Pack(const NOfMMatrix& matrix, int64_t tiles, int64_t stages, DType dtype) {
  std::vector<uint32_t> words(tiles * stages * T::kStageWords);
  for (int64_t stage = 0; stage < tiles * stages; ++stage) {
    const auto places = words.begin() + stage * T::kStageWords + T::kBlocks * T::kBlockWords;
    std::fill_n(places, T::kBlocks * T::kPlaceWords, kNoPlaces);
  }
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t entry = 0; entry < matrix.entries_of_row(); ++entry) {
      const int64_t stage = row / T::kRows * stages + entry / (T::kStage / 2);
      AddEntry(matrix, row, entry, dtype, std::span(words).subspan(stage * T::kStageWords, T::kStageWords));
    }
  }
  return words;
}

}  // namespace

StatusOr<std::unique_ptr<TwoOfFour>> TwoOfFour::Make(const NOfMMatrix& matrix, std::span<const float> bias,
                                                     DType dtype) {
  SWIZZLE_CHECK(matrix.n == 2 && matrix.m == 4 && matrix.taps == 1 && matrix.rows > 0 && matrix.cols > 0);
  std::unique_ptr<TwoOfFour> packed(new TwoOfFour);
  packed->rows_ = matrix.rows, packed->cols_ = matrix.cols;
  packed->tiles_ = CeilDiv(matrix.rows, kRows), packed->stages_ = CeilDiv(matrix.cols, kStage);
  const std::vector<uint32_t> words = Pack(matrix, packed->tiles_, packed->stages_, dtype);
  std::vector<float> biases(packed->tiles_ * kRows);
  std::ranges::copy(bias, biases.begin());
  SWIZZLE_ASSIGN_OR_RETURN(packed->words_, DeviceArray<uint32_t>::Upload(words));
  SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<float>::Upload(biases));
  return packed;
}

}  // namespace swizzle::cuda
