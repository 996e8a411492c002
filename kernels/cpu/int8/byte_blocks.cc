#include "kernels/cpu/int8/byte_blocks.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

}  // namespace

ByteBlocks::ByteBlocks(const ByteWeight& weight)
    : rows_(weight.rows), quads_(CeilDiv(weight.cols, kQuad)), start_(weight.start), scale_(weight.scale) {
  const int64_t padded_rows = groups() * BlockRows::kRows;
  start_.resize(padded_rows);
  scale_.resize(padded_rows);
  weights_.resize(padded_rows * quads_);
  for (int64_t row = 0; row < rows_; ++row) {
    for (const ByteWeight::Entry& entry : weight.entries[row]) {
      const int64_t group = row / BlockRows::kRows;
      int32_t& quad = weights_[(group * quads_ + entry.column / kQuad) * BlockRows::kRows + row % BlockRows::kRows];
      const uint32_t byte = static_cast<uint8_t>(entry.value);
      quad = static_cast<int32_t>(static_cast<uint32_t>(quad) | byte << (8 * (entry.column % kQuad)));
    }
  }
}

size_t ByteBlocks::bytes() const {
  return (weights_.size() + start_.size()) * sizeof(int32_t) + scale_.size() * sizeof(float);
}

int64_t ByteBlocks::groups() const { return CeilDiv(rows_, BlockRows::kRows); }

BlockRows ByteBlocks::Groups(int64_t begin, int64_t end) const {
  const int64_t first_row = begin * BlockRows::kRows;
  return {.first_row = first_row,
          .rows = std::min(rows_, end * BlockRows::kRows) - first_row,
          .quads = quads_,
          .weights = weights_.data() + first_row * quads_,
          .start = start_.data(),
          .scale = scale_.data()};
}

}  // namespace swizzle::cpu
