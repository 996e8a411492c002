#include "server/model/batch_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace swizzle {

BatchRows::BatchRows(std::span<BatchItem> batch, std::vector<int64_t> rows)
    : batch_(batch), rows_(std::move(rows)), total_(std::accumulate(rows_.begin(), rows_.end(), int64_t{0})) {
  SWIZZLE_CHECK(rows_.size() == batch_.size());
}

template <typename Each>
void BatchRows::ForEachPart(RowRange range, const Each& each) const {
  int64_t first = 0;
  for (size_t i = 0; i < batch_.size(); ++i) {
    const RowRange part = {std::clamp<int64_t>(range.begin - first, 0, rows_[i]),
                           std::clamp<int64_t>(range.end - first, 0, rows_[i])};
    if (part.count() > 0) each(batch_[i], rows_[i], part);
    first += rows_[i];
  }
}

void BatchRows::PiecesOf(size_t input, RowRange range, std::vector<std::span<const std::byte>>& pieces) const {
  pieces.clear();
  ForEachPart(range, [&](const BatchItem& item, int64_t rows, RowRange part) {
    const std::span<const std::byte> all = item.inputs[input].bytes;
    const size_t row = all.size() / static_cast<size_t>(rows);
    pieces.push_back(all.subspan(static_cast<size_t>(part.begin) * row, static_cast<size_t>(part.count()) * row));
  });
}

void BatchRows::Append(size_t output, RowRange range, std::span<const std::byte> bytes) const {
  const size_t row = bytes.size() / static_cast<size_t>(range.count());
  const char* next = reinterpret_cast<const char*>(bytes.data());
  ForEachPart(range, [&](const BatchItem& item, int64_t rows, RowRange part) {
    std::string& own = (*item.outputs)[output];
    if (own.empty()) own.reserve(static_cast<size_t>(rows) * row);
    own.append(next, static_cast<size_t>(part.count()) * row);
    next += static_cast<size_t>(part.count()) * row;
  });
}

}  // namespace swizzle
