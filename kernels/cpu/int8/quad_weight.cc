#include "kernels/cpu/int8/quad_weight.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int32_t kQuad = 4;
constexpr int64_t kMostNearColumns = (1 << 16) / 8;

// A row's entries two by two, filled up with zeros to whole quads; pairs in the order of their first columns.
std::vector<ByteWeight::Entry> PairEntries(std::span<const ByteWeight::Entry> entries) {
  constexpr int32_t kMostOfOneSign = 128;  // times 255 is within 16 bits
  using Entry = ByteWeight::Entry;
  std::vector<Entry> more, fewer;
  for (const Entry& entry : entries) (entry.value > 0 ? more : fewer).push_back(entry);
  if (more.size() < fewer.size()) std::swap(more, fewer);
  const auto magnitude = [](const Entry& entry) { return std::abs(int32_t{entry.value}); };
  std::ranges::stable_sort(more, std::ranges::greater(), magnitude);
  std::vector<std::array<Entry, 2>> pairs;
  for (size_t i = 0; i < fewer.size(); ++i) pairs.push_back({more[i], fewer[i]});
  for (size_t largest = fewer.size(), end = more.size(); largest < end; ++largest) {
    const bool fits = end - largest > 1 && magnitude(more[largest]) + magnitude(more[end - 1]) <= kMostOfOneSign;
    pairs.push_back({more[largest], fits ? more[--end] : Entry{more[largest].column, 0}});
  }
  std::ranges::stable_sort(pairs, {}, [](const std::array<Entry, 2>& pair) { return pair[0].column; });
  std::vector<Entry> paired;
  for (const std::array<Entry, 2>& pair : pairs) paired.insert(paired.end(), pair.begin(), pair.end());
  while (paired.size() % kQuad != 0) paired.push_back({paired.back().column, 0});
  return paired;
}

// The columns of a strip, rising: those in which a row is not zero, or the first of each block with such a one. Of
// pairs those of all entries.
std::vector<int32_t> ColumnsOfStrip(const ByteWeight& weight, const QuadShape& shape, int64_t first_row) {
  std::vector<int32_t> columns;
  if (shape.pairs) {
    for (const ByteWeight::Entry& entry : PairEntries(weight.entries[first_row])) columns.push_back(entry.column);
    return columns;
  }
  for (int64_t row = first_row; row < std::min(first_row + shape.strip_rows, weight.rows); ++row) {
    std::vector<int32_t> of_row, merged;
    for (const ByteWeight::Entry& entry : weight.entries[row]) {
      of_row.push_back(shape.blocks ? entry.column / kQuad * kQuad : entry.column);
    }
    if (shape.blocks) of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
    std::ranges::set_union(columns, of_row, std::back_inserter(merged));  // each as often as one of both has it
    columns = std::move(merged);
  }
  return columns;
}

int64_t QuadsOf(const QuadShape& shape, std::span<const int32_t> columns) {
  return shape.blocks ? std::ssize(columns) : CeilDiv<int64_t>(std::ssize(columns), kQuad);
}

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

int64_t CountQuads(const ByteWeight& weight, const QuadShape& shape) {
  int64_t quads = 0;
  for (int64_t row = 0; row < weight.rows; row += shape.strip_rows) {
    quads += QuadsOf(shape, ColumnsOfStrip(weight, shape, row));
  }
  return quads;
}

QuadWeight::QuadWeight(const ByteWeight& weight, const QuadShape& shape, int64_t slices, int64_t parts)
    : shape_(shape), near_(weight.cols < kMostNearColumns), parts_(parts) {
  SWIZZLE_CHECK(!shape.pairs || (shape.strip_rows == 1 && !shape.blocks));
  SWIZZLE_CHECK(parts == 1 || (shape.strip_rows == 1 && !shape.pairs));
  std::vector<std::vector<int32_t>> columns;
  for (int64_t row = 0; row < weight.rows; row += shape.strip_rows) {
    columns.push_back(ColumnsOfStrip(weight, shape, row));
  }
  std::vector<uint32_t> order(columns.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t strip) { return QuadsOf(shape, columns[strip]); });
  for (int64_t slice = 0; slice < slices; ++slice) {
    // Dealt out to and fro: the first slice gets the first and the last strip of each round of two.
    std::vector<uint32_t> strips;
    for (int64_t i = 0; i < std::ssize(order); ++i) {
      const int64_t turn = i % (2 * slices);
      if ((turn < slices ? turn : 2 * slices - 1 - turn) == slice) strips.push_back(order[i]);
    }
    for (int64_t part = 0; part < parts; ++part) AddPart(weight, columns, part, strips);
  }
}

void QuadWeight::AddPart(const ByteWeight& weight, std::span<const std::vector<int32_t>> columns, int64_t part,
                         std::vector<uint32_t> strips) {
  const auto first_of = [&](int64_t p) {
    return static_cast<int32_t>(p == parts_ ? weight.cols : weight.cols * p / parts_ / kQuad * kQuad);
  };
  const auto columns_of = [&](uint32_t strip) {
    if (parts_ == 1) return std::span(columns[strip]);
    const auto begin = std::ranges::lower_bound(columns[strip], first_of(part));
    return std::span(begin, std::ranges::lower_bound(columns[strip], first_of(part + 1)));
  };
  if (parts_ > 1) {
    std::ranges::stable_sort(strips, {}, [&](uint32_t strip) { return QuadsOf(shape_, columns_of(strip)); });
  }
  SliceBegin begin{groups_.size(), 0, rows_.size(), weights_.size()};
  for (const uint32_t strip : strips) {
    const std::span<const int32_t> of = columns_of(strip);
    const auto quads = static_cast<uint32_t>(QuadsOf(shape_, of));
    if (groups_.size() == begin.group || groups_.back().quads != quads) groups_.push_back({0, quads});
    ++groups_.back().strips;
    if (shape_.pairs) {
      AddPairs(weight, strip);
    } else {
      AddStrip(weight, int64_t{strip} * shape_.strip_rows, of);
    }
  }
  begin.groups = groups_.size() - begin.group;
  slices_.push_back(begin);
}

void QuadWeight::AddOffset(int32_t column) {
  if (near_) {
    near_offsets_.push_back(static_cast<uint16_t>(column * 8));
  } else {
    far_columns_.push_back(static_cast<uint32_t>(column));
  }
}

void QuadWeight::AddRow(const ByteWeight& weight, int64_t row) {
  const bool is_row = row < weight.rows;
  rows_.push_back(is_row ? static_cast<uint32_t>(row) : QuadRows::kNoRow);
  start_.push_back(is_row ? weight.start[row] : 0);
  scale_.push_back(is_row ? weight.scale[row] : 0.0f);
}

void QuadWeight::AddPairs(const ByteWeight& weight, int64_t row) {
  AddRow(weight, row);
  const std::vector<ByteWeight::Entry> entries = PairEntries(weight.entries[row]);
  for (size_t i = 0; i < entries.size(); i += kQuad) {
    int8_t bytes[kQuad];
    for (size_t byte = 0; byte < kQuad; ++byte) {
      bytes[byte] = entries[i + byte].value;
      AddOffset(entries[i + byte].column);
    }
    weights_.push_back(PackQuad(bytes));
  }
}

void QuadWeight::AddStrip(const ByteWeight& weight, int64_t first_row, std::span<const int32_t> columns) {
  const int64_t rows = shape_.strip_rows, quads = QuadsOf(shape_, columns);
  const size_t first_weight = weights_.size();
  weights_.resize(first_weight + quads * rows);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = first_row + r;
    AddRow(weight, row);
    if (row >= weight.rows) continue;
    size_t at = 0;  // both lists rise
    for (const ByteWeight::Entry& entry : weight.entries[row]) {
      const int32_t column = shape_.blocks ? entry.column / kQuad * kQuad : entry.column;
      while (at < columns.size() && columns[at] < column) ++at;
      if (at == columns.size()) break;
      if (columns[at] != column) continue;  // of another part
      const size_t quad = shape_.blocks ? at : at / kQuad;
      const size_t byte = shape_.blocks ? entry.column % kQuad : at % kQuad;
      const uint32_t value = static_cast<uint8_t>(entry.value);
      int32_t& packed = weights_[first_weight + quad * rows + r];
      packed = static_cast<int32_t>(static_cast<uint32_t>(packed) | value << (8 * byte));
      if (!shape_.blocks) ++at;  // the same column may come again
    }
  }
  for (const int32_t column : columns) AddOffset(column);
  if (shape_.blocks) return;
  for (int64_t spare = std::ssize(columns); spare < quads * kQuad; ++spare) AddOffset(columns.back());
}

size_t QuadWeight::bytes() const {
  return BytesOf(slices_) + BytesOf(groups_) + BytesOf(weights_) + BytesOf(near_offsets_) + BytesOf(far_columns_) +
         BytesOf(rows_) + BytesOf(start_) + BytesOf(scale_);
}

QuadRows QuadWeight::Slice(int64_t slice, int64_t part) const {
  const SliceBegin& begin = slices_[slice * parts_ + part];
  const size_t offset = begin.quad / shape_.strip_rows * (shape_.blocks ? 1 : kQuad);
  return {.shape = shape_,
          .groups = std::span(groups_).subspan(begin.group, begin.groups),
          .weights = weights_.data() + begin.quad,
          .near_offsets = near_ ? near_offsets_.data() + offset : nullptr,
          .far_columns = near_ ? nullptr : far_columns_.data() + offset,
          .rows = rows_.data() + begin.row,
          .start = start_.data() + begin.row,
          .scale = scale_.data() + begin.row,
          .begins = part == 0,
          .ends = part + 1 == parts_};
}

}  // namespace swizzle::cpu
