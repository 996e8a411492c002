// Where the rows of a matrix have nonzeros, and orders of rows that bring together those that share columns: by equal
// patterns, or by like ones. Orders depend on nothing but the patterns and the order in which rows stand. Immutable;
// thread-safe.
#ifndef SWIZZLE_KERNELS_FORMAT_ROW_PATTERNS_H_
#define SWIZZLE_KERNELS_FORMAT_ROW_PATTERNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace swizzle {

class WeightMatrix;

// The rows 0, 1, 2, ... as they stand.
std::vector<uint32_t> RowsInOrder(int64_t rows);

// The nonzeros of a matrix, row by row.
class RowPatterns {
 public:
  explicit RowPatterns(const WeightMatrix& matrix);

  int64_t rows() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t cols() const { return cols_; }
  int64_t nonzeros() const { return static_cast<int64_t>(columns_.size()); }
  std::span<const uint32_t> Of(uint32_t row) const {
    return std::span(columns_).subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
  }

  // 128 bits of a hash (XXH3) of all of it, so that equal ones are of equal patterns.
  using Fingerprint = std::array<uint64_t, 2>;
  Fingerprint fingerprint() const;

  // Rows with equal patterns together, in their own order.
  std::vector<uint32_t> Sorted() const;
  // Of `sorted` rows first those that fill groups with equal ones, then what is left of each pattern.
  std::vector<uint32_t> InGroups(std::span<const uint32_t> sorted, int64_t vector_rows) const;
  // Entries that groups store; rows past the last do not count.
  int64_t Entries(std::span<const uint32_t> order, int64_t vector_rows) const;

 private:
  const int64_t cols_;
  std::vector<size_t> offsets_ = {0};
  std::vector<uint32_t> columns_;
};

// Rows whose patterns are alike though hardly two are equal, as those of rows pruned together are once some of what
// was kept is zero, too.
class LikeRows {
 public:
  // REQUIRES: patterns outlive this.
  explicit LikeRows(const RowPatterns& patterns);

  // Whether most rows have others like them, as a few of them show: `count` rows with the row itself that share more
  // than half of the columns that one of the two has.
  bool Any(int64_t count) const;

  // First groups of a row with those nearest to it that are like it; then the rows of which there are too few like each
  // other, the nearest together. None as soon as it is unlikely that groups store at most `most_entries`.
  // O(rows^2 / vector_rows * cols / 64).
  std::optional<std::vector<uint32_t>> InGroups(int64_t vector_rows, double most_entries) const;

 private:
  // Of `rows` the first, and those nearest to it, at most `count` in all; `alike`: only such as share with it more than
  // half of the columns that one of the two has.
  std::vector<uint32_t> Nearest(std::span<const uint32_t> rows, int64_t count, bool alike) const;
  int64_t Common(uint32_t a, uint32_t b) const;           // columns
  int64_t Columns(std::span<const uint32_t> rows) const;  // in which one of the rows has a nonzero

  const RowPatterns& patterns_;
  const int64_t words_;
  std::vector<uint64_t> bits_;          // of each row, one a column
  std::vector<uint32_t> rows_, empty_;  // with nonzeros, and without
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_ROW_PATTERNS_H_
