#include "kernels/format/structure.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/base/status.h"

namespace swizzle {
namespace {

constexpr double kLeastDenseFill = 0.95;
constexpr double kLeastFill = 0.75;
constexpr double kLeastExplained = 0.75;
constexpr double kWorthwhileBytes = 0.9;
constexpr int64_t kLeastGroups = 32;
constexpr int64_t kFullBlock = 16;  // rows and columns
constexpr int64_t kValueBytes = sizeof(float);
constexpr int64_t kOffsetBytes = sizeof(uint32_t);

// Where a matrix has its nonzeros.
struct NonzeroPlaces {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t taps = 1;
  std::span<const uint32_t> row_offsets;
  std::span<const uint32_t> col_indices;

  int64_t nonzeros() const { return static_cast<int64_t>(col_indices.size()); }
  int64_t elements() const { return rows * cols; }
  int64_t channels() const { return cols / taps; }
  std::span<const uint32_t> Row(int64_t row) const {
    return col_indices.subspan(row_offsets[row], row_offsets[row + 1] - row_offsets[row]);
  }
};

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

int64_t IndexBytes(int64_t values) { return values <= int64_t{1} << 16 ? sizeof(uint16_t) : sizeof(uint32_t); }

// The columns of each tap in groups of `width` neighbouring input channels, the last cut off at the edge.
class ColumnGroups {
 public:
  ColumnGroups(const NonzeroPlaces& places, int64_t width)
      : width_(width), channels_(places.channels()), per_tap_(CeilDiv(places.channels(), width)), of_(places.cols) {
    count_ = places.taps * per_tap_;
    for (int64_t c = 0, col = 0; c < channels_; ++c) {
      for (int64_t tap = 0; tap < places.taps; ++tap) of_[col++] = static_cast<uint32_t>(tap * per_tap_ + c / width);
    }
  }

  int64_t count() const { return count_; }
  uint32_t Of(uint32_t col) const { return of_[col]; }
  int64_t WidthOf(uint32_t group) const { return std::min(width_, channels_ - group % per_tap_ * width_); }

 private:
  const int64_t width_, channels_, per_tap_;
  int64_t count_ = 0;
  std::vector<uint32_t> of_;
};

// The patterns that fit, the most specific first.
class Choice {
 public:
  explicit Choice(const NonzeroPlaces& places) : places_(places) {}

  // A pattern that stores `cells` entries in structure.bytes.
  void Offer(Structure structure, int64_t cells) {
    const int64_t zeros = places_.elements() - places_.nonzeros();
    structure.fill = Share(places_.nonzeros(), cells);
    const double explained = 1.0 - Share(cells - places_.nonzeros(), zeros);
    if (structure.fill >= kLeastFill && explained >= kLeastExplained) fitting_.push_back(structure);
  }

  // None if none fits.
  std::optional<Structure> Best() const {
    const auto least = std::min_element(fitting_.begin(), fitting_.end(),
                                        [](const Structure& a, const Structure& b) { return a.bytes < b.bytes; });
    for (const Structure& structure : fitting_) {
      if (kWorthwhileBytes * static_cast<double>(structure.bytes) <= static_cast<double>(least->bytes))
        return structure;
    }
    return std::nullopt;
  }

 private:
  const NonzeroPlaces& places_;
  std::vector<Structure> fitting_;
};

void OfferBlocks(const NonzeroPlaces& places, int64_t block_rows, int64_t block_cols, Choice& choice) {
  if (places.rows < block_rows || places.channels() < block_cols) return;
  const ColumnGroups groups(places, block_cols);
  std::vector<uint32_t> seen(groups.count());  // the row of blocks, from 1, that last had a nonzero there
  int64_t blocks = 0, cells = 0;
  for (int64_t row = 0; row < places.rows; ++row) {
    const int64_t block_row = row / block_rows;
    const int64_t height = std::min(block_rows, places.rows - block_row * block_rows);
    for (uint32_t col : places.Row(row)) {
      const uint32_t group = groups.Of(col);
      if (seen[group] == block_row + 1) continue;
      seen[group] = static_cast<uint32_t>(block_row + 1);
      ++blocks;
      cells += height * groups.WidthOf(group);
    }
  }
  Structure structure{.pattern = SparsityPattern::kBlocks, .block_rows = block_rows, .block_cols = block_cols};
  structure.bytes =
      cells * kValueBytes + blocks * IndexBytes(groups.count()) + kOffsetBytes * (CeilDiv(places.rows, block_rows) + 1);
  choice.Offer(structure, cells);
}

// The most nonzeros that any group of a row has; stops at more than `limit`.
int64_t FullestGroup(const NonzeroPlaces& places, const ColumnGroups& groups, int64_t limit) {
  std::vector<uint32_t> seen(groups.count());
  std::vector<uint8_t> counts(groups.count());
  int64_t most = 0;
  for (int64_t row = 0; row < places.rows && most <= limit; ++row) {
    for (uint32_t col : places.Row(row)) {
      const uint32_t group = groups.Of(col);
      if (seen[group] != row + 1) counts[group] = 0;
      seen[group] = static_cast<uint32_t>(row + 1);
      most = std::max<int64_t>(most, ++counts[group]);
    }
  }
  return most;
}

void OfferNOfM(const NonzeroPlaces& places, int64_t live_rows, int64_t m, Choice& choice) {
  if (places.channels() < m) return;
  const ColumnGroups groups(places, m);
  if (live_rows * groups.count() < kLeastGroups) return;
  const int64_t most = FullestGroup(places, groups, m / 2);
  if (most > m / 2) return;
  const auto n = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
  int64_t row_cells = 0;
  for (int64_t group = 0; group < groups.count(); ++group) {
    row_cells += std::min(n, groups.WidthOf(static_cast<uint32_t>(group)));
  }
  const int64_t cells = live_rows * row_cells;
  Structure structure{.pattern = SparsityPattern::kNOfM, .n = n, .m = m};
  const int64_t place_bits = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(m))) - 1;
  structure.bytes = cells * kValueBytes + CeilDiv(cells * place_bits, 8);
  choice.Offer(structure, cells);
}

uint64_t HashOf(std::span<const uint32_t> cols) {
  uint64_t hash = cols.size();
  for (uint32_t col : cols) {
    hash = (hash ^ (col + 1)) * 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    hash ^= hash >> 32;
  }
  return hash;
}

// Rows that are not zero, those with equal places counted together.
struct EqualRows {
  int64_t rows = 0;
  int64_t nonzeros = 0;  // of each
};

std::vector<EqualRows> GroupEqualRows(const NonzeroPlaces& places) {
  struct HashedRow {
    uint64_t hash;
    uint32_t row;
  };
  std::vector<HashedRow> rows;
  for (int64_t row = 0; row < places.rows; ++row) {
    if (!places.Row(row).empty()) rows.push_back({HashOf(places.Row(row)), static_cast<uint32_t>(row)});
  }
  std::sort(rows.begin(), rows.end(), [](const HashedRow& a, const HashedRow& b) { return a.hash < b.hash; });
  std::vector<EqualRows> groups;
  std::span<const uint32_t> first;
  for (const HashedRow& hashed : rows) {
    const std::span<const uint32_t> row = places.Row(hashed.row);
    if (groups.empty() || !std::equal(first.begin(), first.end(), row.begin(), row.end())) {
      first = row;
      groups.push_back({0, static_cast<int64_t>(row.size())});
    }
    ++groups.back().rows;
  }
  return groups;
}

void OfferRowVectors(const NonzeroPlaces& places, const std::vector<EqualRows>& groups, int64_t length,
                     Choice& choice) {
  Structure structure{.pattern = SparsityPattern::kRowVectors, .block_rows = length};
  structure.bytes = places.rows * kOffsetBytes;  // the permutation
  int64_t cells = 0;
  for (const EqualRows& group : groups) {
    const int64_t strips = CeilDiv(group.rows, length);
    cells += strips * length * group.nonzeros;
    structure.bytes += strips * (group.nonzeros * (length * kValueBytes + IndexBytes(places.cols)) + kOffsetBytes);
  }
  choice.Offer(structure, cells);
}

// Of blocks as they are stored, whatever the taps. 0 where the zeros lie in them, too.
double ShareInFullBlocks(const NonzeroPlaces& places) {
  std::vector<int64_t> counts(CeilDiv(places.cols, kFullBlock));
  int64_t in_full = 0, zeros_in_full = 0;
  for (int64_t first = 0; first < places.rows; first += kFullBlock) {
    const int64_t height = std::min(kFullBlock, places.rows - first);
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t row = first; row < first + height; ++row) {
      for (uint32_t col : places.Row(row)) ++counts[col / kFullBlock];
    }
    for (int64_t block = 0; block < std::ssize(counts); ++block) {
      const int64_t width = std::min(kFullBlock, places.cols - block * kFullBlock);
      if (4 * counts[block] <= 3 * height * width) continue;
      in_full += counts[block];
      zeros_in_full += height * width - counts[block];
    }
  }
  if (Share(zeros_in_full, places.elements() - places.nonzeros()) > 1.0 - kLeastExplained) return 0.0;
  return Share(in_full, places.nonzeros());
}

// `counted`: with its zero lines.
Structure ChoosePattern(const NonzeroPlaces& places, const Structure& counted) {
  Choice choice(places);
  const std::vector<EqualRows> groups = GroupEqualRows(places);
  for (int64_t size : {32, 16}) OfferBlocks(places, size, size, choice);
  OfferBlocks(places, 8, 1, choice);
  OfferBlocks(places, 1, 8, choice);
  for (int64_t length : {16, 8}) OfferRowVectors(places, groups, length, choice);
  OfferBlocks(places, 4, 1, choice);
  OfferBlocks(places, 1, 4, choice);
  OfferRowVectors(places, groups, 4, choice);
  OfferBlocks(places, 2, 1, choice);
  for (int64_t m : {4, 8}) OfferNOfM(places, places.rows - counted.zero_rows, m, choice);

  Structure structure{.pattern = SparsityPattern::kUnstructured};
  structure.bytes = places.nonzeros() * (kValueBytes + IndexBytes(places.cols)) + kOffsetBytes * (places.rows + 1);
  if (const auto best = choice.Best()) {
    structure = *best;
  } else {
    structure.in_full_blocks = ShareInFullBlocks(places);
  }
  structure.zero_rows = counted.zero_rows;
  structure.zero_cols = counted.zero_cols;
  structure.zero_channels = counted.zero_channels;
  return structure;
}

// What is wholly zero, given how many nonzeros each row has and which columns have any.
Structure CountZeroLines(std::span<const uint32_t> row_nonzeros, std::span<const uint8_t> col_used, int64_t taps) {
  Structure structure;
  structure.zero_rows = std::count(row_nonzeros.begin(), row_nonzeros.end(), 0u);
  structure.zero_cols = std::count(col_used.begin(), col_used.end(), uint8_t{0});
  for (auto channel = col_used.begin(); channel != col_used.end(); channel += taps) {
    structure.zero_channels += std::count(channel, channel + taps, uint8_t{0}) == taps;
  }
  return structure;
}

// Whether `structure`, with its zero lines counted, is dense without them; its pattern is then set.
bool IsDenseWithoutZeroLines(int64_t rows, int64_t cols, int64_t nonzeros, Structure& structure) {
  const int64_t live_rows = rows - structure.zero_rows, live_cols = cols - structure.zero_cols;
  structure.fill = Share(nonzeros, live_rows * live_cols);
  structure.bytes = live_rows * live_cols * kValueBytes;
  if (structure.fill < kLeastDenseFill) return false;
  if (rows * cols > 0 && structure.zero_rows + structure.zero_cols > 0) {
    structure.pattern = SparsityPattern::kRowsColumns;
    structure.bytes += (live_rows + live_cols) * kOffsetBytes;
  }
  return true;
}

void CheckRequirements(int64_t rows, int64_t cols, int64_t taps) {
  constexpr int64_t kLimit = std::numeric_limits<uint32_t>::max();
  SWIZZLE_CHECK(rows < kLimit && cols < kLimit && taps >= 1 && cols % taps == 0);
}

}  // namespace

std::string_view SparsityPatternName(SparsityPattern pattern) {
  switch (pattern) {
    case SparsityPattern::kDense:
      return "dense";
    case SparsityPattern::kRowsColumns:
      return "rows_columns";
    case SparsityPattern::kBlocks:
      return "blocks";
    case SparsityPattern::kNOfM:
      return "n_of_m";
    case SparsityPattern::kRowVectors:
      return "row_vectors";
    case SparsityPattern::kUnstructured:
      return "unstructured";
  }
  return "?";
}

std::string Structure::Name() const {
  switch (pattern) {
    case SparsityPattern::kRowsColumns:
      return zero_cols == 0 ? "zero rows" : zero_rows == 0 ? "zero columns" : "zero rows+cols";
    case SparsityPattern::kBlocks:
      return Concat(block_rows, "x", block_cols, " blocks");
    case SparsityPattern::kNOfM:
      return Concat(n, ":", m);
    case SparsityPattern::kRowVectors:
      return Concat(block_rows, "-row vectors");
    case SparsityPattern::kDense:
    case SparsityPattern::kUnstructured:
      break;
  }
  return std::string(SparsityPatternName(pattern));
}

Structure DetectStructure(const WeightMatrix& matrix, int64_t taps) {
  const auto [rows, cols] = matrix.size();
  CheckRequirements(rows, cols, taps);
  std::vector<uint32_t> row_nonzeros(rows);
  std::vector<uint8_t> col_used(cols);
  matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> nonzeros) {
    row_nonzeros[row] = static_cast<uint32_t>(nonzeros.size());
    for (uint32_t col : nonzeros) col_used[col] = 1;
  });
  const int64_t nonzeros = std::accumulate(row_nonzeros.begin(), row_nonzeros.end(), int64_t{0});
  Structure structure = CountZeroLines(row_nonzeros, col_used, taps);
  if (IsDenseWithoutZeroLines(rows, cols, nonzeros, structure)) return structure;

  std::vector<uint32_t> row_offsets = {0}, col_indices;
  col_indices.reserve(nonzeros);
  matrix.ForEachRow([&](int64_t, std::span<const uint32_t> row) {
    col_indices.insert(col_indices.end(), row.begin(), row.end());
    row_offsets.push_back(static_cast<uint32_t>(col_indices.size()));
  });
  return ChoosePattern({rows, cols, taps, row_offsets, col_indices}, structure);
}

}  // namespace swizzle
