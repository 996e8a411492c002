#include "kernels/cpu/int8/quad_weight.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;
constexpr int64_t kMostNearColumns = (1 << 16) / 8;

int64_t QuadsOf(const std::vector<ByteWeight::Entry>& row) { return CeilDiv(std::ssize(row), kQuad); }

template <typename T>
size_t BytesOf(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

int32_t PackQuad(const int8_t (&bytes)[4]) {
  uint32_t packed = 0;
  for (int i = 0; i < 4; ++i) packed |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return static_cast<int32_t>(packed);
}

QuadWeight::QuadWeight(const ByteWeight& weight, int64_t slices) {
  std::vector<uint32_t> order(weight.rows);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t row) { return QuadsOf(weight.entries[row]); });
  const bool near = weight.cols < kMostNearColumns;
  for (int64_t slice = 0; slice < slices; ++slice) {
    SliceBegin begin{groups_.size(), 0, rows_.size(), weights_.size()};
    // Dealt out to and fro: the first slice gets the first and the last row of each round of two.
    for (int64_t i = 0; i < weight.rows; ++i) {
      const int64_t turn = i % (2 * slices);
      if ((turn < slices ? turn : 2 * slices - 1 - turn) != slice) continue;
      const uint32_t row = order[i];
      const std::vector<ByteWeight::Entry>& entries = weight.entries[row];
      const auto quads = static_cast<uint32_t>(QuadsOf(entries));
      if (groups_.size() == begin.group || groups_.back().quads != quads) groups_.push_back({0, quads});
      ++groups_.back().rows;
      rows_.push_back(row);
      start_.push_back(weight.start[row]);
      scale_.push_back(weight.scale[row]);
      for (size_t first = 0; first < entries.size(); first += kQuad) {
        int8_t bytes[kQuad] = {};
        for (size_t k = first; k < first + kQuad; ++k) {
          const ByteWeight::Entry& entry = entries[std::min(k, entries.size() - 1)];
          if (k < entries.size()) bytes[k - first] = entry.value;
          if (near) {
            near_offsets_.push_back(static_cast<uint16_t>(entry.column * 8));
          } else {
            far_columns_.push_back(static_cast<uint32_t>(entry.column));
          }
        }
        weights_.push_back(PackQuad(bytes));
      }
    }
    begin.groups = groups_.size() - begin.group;
    slices_.push_back(begin);
  }
}

size_t QuadWeight::bytes() const {
  return BytesOf(slices_) + BytesOf(groups_) + BytesOf(weights_) + BytesOf(near_offsets_) + BytesOf(far_columns_) +
         BytesOf(rows_) + BytesOf(start_) + BytesOf(scale_);
}

QuadRows QuadWeight::Slice(int64_t slice) const {
  const SliceBegin& begin = slices_[slice];
  const bool far = !far_columns_.empty();
  return {.groups = std::span(groups_).subspan(begin.group, begin.groups),
          .weights = weights_.data() + begin.quad,
          .near_offsets = far ? nullptr : near_offsets_.data() + begin.quad * kQuad,
          .far_columns = far ? far_columns_.data() + begin.quad * kQuad : nullptr,
          .rows = rows_.data() + begin.row,
          .start = start_.data() + begin.row,
          .scale = scale_.data() + begin.row};
}

}  // namespace swizzle::cpu
