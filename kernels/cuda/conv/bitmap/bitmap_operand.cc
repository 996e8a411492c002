#include "kernels/cuda/conv/bitmap/bitmap_operand.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"

namespace swizzle::cuda {

static_assert(BitmapMatrix::kTileRows == kStripLanes);

StatusOr<std::unique_ptr<BitmapStrips>> BitmapStrips::Make(const BitmapMatrix& matrix, std::span<const float> bias,
                                                           DType dtype) {
  const int64_t depth = RoundUp(matrix.cols, kStripDepthUnit), strips = RoundUp(matrix.row_tiles(), kStripsUnit);
  std::vector<BitmapWord> words(strips * depth);
  std::vector<uint32_t> alive(strips * depth / 32);
  std::vector<uint16_t> values;
  values.reserve(matrix.values.size() * 2 + kValuesAhead);
  std::vector<float> biases(strips * kStripLanes);
  std::copy(bias.begin(), bias.end(), biases.begin());
  matrix.ForEachWord([&](int64_t strip, int64_t k, uint32_t bits, int64_t first) {
    if (bits == 0) return;
    words[strip * depth + k] = {bits, static_cast<uint32_t>(values.size())};
    alive[(strip * depth + k) / 32] |= uint32_t{1} << k % 32;
    for (int64_t i = first; i < first + std::popcount(bits); ++i) {
      const float value = matrix.values[i];
      values.push_back(HalfBits(value, dtype));
    }
    values.resize(RoundUp(values.size(), kValuesUnit));
  });
  values.resize(values.size() + kValuesAhead);
  std::unique_ptr<BitmapStrips> packed(new BitmapStrips);
  packed->rows_ = matrix.rows;
  packed->cols_ = matrix.cols;
  packed->strips_ = static_cast<int32_t>(strips);
  packed->depth_ = static_cast<int32_t>(depth);
  SWIZZLE_ASSIGN_OR_RETURN(packed->words_, DeviceArray<BitmapWord>::Upload(words));
  SWIZZLE_ASSIGN_OR_RETURN(packed->alive_, DeviceArray<uint32_t>::Upload(alive));
  SWIZZLE_ASSIGN_OR_RETURN(packed->values_, DeviceArray<uint16_t>::Upload(values));
  SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<float>::Upload(biases));
  return packed;
}

size_t BitmapActivations::Bytes(int64_t depth, int64_t strips) {
  const auto words = static_cast<size_t>(RoundUp(depth, kStripDepthUnit) * RoundUp(strips, kStripsUnit));
  return words * sizeof(BitmapWord) + words / 32 * sizeof(uint32_t) +
         (words * kStripLanes + kValuesAhead) * sizeof(uint16_t);
}

BitmapActivations::BitmapActivations(std::byte* memory, int64_t depth, int64_t strips)
    : strips_(static_cast<int32_t>(RoundUp(strips, kStripsUnit))),
      depth_(static_cast<int32_t>(RoundUp(depth, kStripDepthUnit))) {
  const size_t words = static_cast<size_t>(depth_) * strips_;
  words_ = reinterpret_cast<BitmapWord*>(memory);
  alive_ = reinterpret_cast<uint32_t*>(words_ + words);
  values_ = reinterpret_cast<uint16_t*>(alive_ + words / 32);
}

StatusOr<std::unique_ptr<BitmapActivations>> BitmapActivations::Make(int64_t depth, int64_t strips) {
  SWIZZLE_ASSIGN_OR_RETURN(auto memory, DeviceArray<std::byte>::Allocate(Bytes(depth, strips)));
  auto room = std::make_unique<BitmapActivations>(memory.data(), depth, strips);
  room->owned_ = std::move(memory);
  return room;
}

}  // namespace swizzle::cuda
