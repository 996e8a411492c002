#include "kernels/format/row_patterns.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/format/weight_matrix.h"

namespace swizzle {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kProbedRows = 16;
constexpr int64_t kFewGroups = 4;     // show how full the others can be, the best being made first
constexpr int64_t kFewFailures = 16;  // rows without others like them, beyond one a group

// std::popcount is a call where code runs on processors of any age: counts are added up byte by byte first.
constexpr int64_t kSummableWords = 31;  // have less than 256 ones in the same byte

uint64_t OnesOfBytes(uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555;
  word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333);
  return (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
}

int64_t SumOfBytes(uint64_t bytes) {
  const uint64_t pairs = (bytes & 0x00FF00FF00FF00FF) + ((bytes >> 8) & 0x00FF00FF00FF00FF);
  return static_cast<int64_t>((pairs * 0x0001000100010001) >> 48);
}

// Takes rows out of a list in which others keep their order.
class Remover {
 public:
  explicit Remover(int64_t rows) : taken_(rows) {}
  void Remove(std::span<const uint32_t> taken, std::vector<uint32_t>& rows) {
    for (uint32_t row : taken) taken_[row] = 1;
    std::erase_if(rows, [&](uint32_t row) { return taken_[row] != 0; });
    for (uint32_t row : taken) taken_[row] = 0;
  }

 private:
  std::vector<uint8_t> taken_;
};

void Append(std::span<const uint32_t> rows, std::vector<uint32_t>& order) {
  order.insert(order.end(), rows.begin(), rows.end());
}

}  // namespace

std::vector<uint32_t> RowsInOrder(int64_t rows) {
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

RowPatterns::RowPatterns(const WeightMatrix& matrix) : cols_(matrix.size().cols) {
  matrix.ForEachRow([&](int64_t, std::span<const uint32_t> cols) {
    columns_.insert(columns_.end(), cols.begin(), cols.end());
    offsets_.push_back(columns_.size());
  });
}

RowPatterns::Fingerprint RowPatterns::fingerprint() const {
  const auto seed = static_cast<XXH64_hash_t>(cols_);
  const XXH128_hash_t rows = XXH3_128bits_withSeed(offsets_.data(), offsets_.size() * sizeof(offsets_[0]), seed);
  const XXH128_hash_t all =
      XXH3_128bits_withSeed(columns_.data(), columns_.size() * sizeof(columns_[0]), rows.low64 ^ rows.high64);
  return {all.low64, all.high64};
}

std::vector<uint32_t> RowPatterns::Sorted() const {
  std::vector<uint32_t> order = RowsInOrder(rows());
  std::ranges::stable_sort(order,
                           [&](uint32_t a, uint32_t b) { return std::ranges::lexicographical_compare(Of(a), Of(b)); });
  return order;
}

std::vector<uint32_t> RowPatterns::InGroups(std::span<const uint32_t> sorted, int64_t vector_rows) const {
  std::vector<uint32_t> order, left;
  const int64_t count = std::ssize(sorted);
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && std::ranges::equal(Of(sorted[begin]), Of(sorted[end]))) ++end;
    const int64_t full = begin + (end - begin) / vector_rows * vector_rows;
    Append(sorted.subspan(begin, full - begin), order);
    Append(sorted.subspan(full, end - full), left);
  }
  Append(left, order);
  return order;
}

int64_t RowPatterns::Entries(std::span<const uint32_t> order, int64_t vector_rows) const {
  std::vector<int64_t> seen(cols_);  // the group, from 1, that last had a nonzero there
  int64_t entries = 0;
  for (int64_t begin = 0, group = 1; begin < rows(); begin += vector_rows, ++group) {
    const auto members = order.subspan(begin, std::min(vector_rows, rows() - begin));
    for (uint32_t row : members) {
      for (uint32_t col : Of(row)) {
        entries += seen[col] == group ? 0 : static_cast<int64_t>(members.size());
        seen[col] = group;
      }
    }
  }
  return entries;
}

LikeRows::LikeRows(const RowPatterns& patterns)
    : patterns_(patterns), words_(CeilDiv(patterns.cols(), kWordBits)), bits_(patterns.rows() * words_) {
  for (uint32_t row = 0; row < patterns.rows(); ++row) {
    uint64_t* const bits = bits_.data() + row * words_;
    for (uint32_t col : patterns.Of(row)) bits[col / kWordBits] |= uint64_t{1} << (col % kWordBits);
    (patterns.Of(row).empty() ? empty_ : rows_).push_back(row);
  }
}

bool LikeRows::Any(int64_t count) const {
  std::vector<uint32_t> rows = rows_;
  const int64_t step = CeilDiv(std::ssize(rows), kProbedRows);
  int64_t probed = 0, with_like_rows = 0;
  for (int64_t place = 0; place < std::ssize(rows); place += step, ++probed) {
    std::swap(rows[0], rows[place]);
    if (std::ssize(Nearest(rows, count, /*alike=*/true)) == count) ++with_like_rows;
    std::swap(rows[0], rows[place]);
  }
  return 2 * with_like_rows > probed;
}

int64_t LikeRows::Common(uint32_t a, uint32_t b) const {
  const uint64_t* const of_a = bits_.data() + a * words_;
  const uint64_t* const of_b = bits_.data() + b * words_;
  int64_t common = 0;
  for (int64_t begin = 0; begin < words_; begin += kSummableWords) {
    const int64_t end = std::min(begin + kSummableWords, words_);
    uint64_t counts = 0;
    for (int64_t word = begin; word < end; ++word) counts += OnesOfBytes(of_a[word] & of_b[word]);
    common += SumOfBytes(counts);
  }
  return common;
}

int64_t LikeRows::Columns(std::span<const uint32_t> rows) const {
  std::vector<uint64_t> columns(words_);
  for (uint32_t row : rows) {
    const uint64_t* const bits = bits_.data() + row * words_;
    for (int64_t word = 0; word < words_; ++word) columns[word] |= bits[word];
  }
  return std::transform_reduce(columns.begin(), columns.end(), int64_t{0}, std::plus<>(),
                               [](uint64_t word) { return int64_t{std::popcount(word)}; });
}

std::vector<uint32_t> LikeRows::Nearest(std::span<const uint32_t> rows, int64_t count, bool alike) const {
  struct Candidate {
    int64_t nearness;  // columns that the first has, too, less those that it lacks
    size_t place;
    bool operator<(const Candidate& other) const {
      return nearness != other.nearness ? nearness > other.nearness : place < other.place;
    }
  };
  std::vector<Candidate> candidates;
  const int64_t of_first = std::ssize(patterns_.Of(rows[0]));
  for (size_t place = 1; place < rows.size(); ++place) {
    const int64_t of_row = std::ssize(patterns_.Of(rows[place])), common = Common(rows[0], rows[place]);
    // Of the columns that one has these are more than half if thrice as many are more than both have.
    if (alike && 3 * common <= of_first + of_row) continue;
    candidates.push_back({2 * common - of_row, place});
  }
  const auto nearest = candidates.begin() + std::min(count - 1, std::ssize(candidates));
  std::partial_sort(candidates.begin(), nearest, candidates.end());
  std::vector<uint32_t> found = {rows[0]};
  for (auto candidate = candidates.begin(); candidate != nearest; ++candidate) found.push_back(rows[candidate->place]);
  return found;
}

std::optional<std::vector<uint32_t>> LikeRows::InGroups(int64_t vector_rows, double most_entries) const {
  const double least_fill = static_cast<double>(patterns_.nonzeros()) / most_entries;
  std::vector<uint32_t> order, rows = rows_;
  const auto most_left = std::ssize(rows) / 2 + vector_rows;
  std::vector<std::vector<uint32_t>> few;  // rows with those like them that fill no group
  Remover remover(patterns_.rows());
  int64_t groups = 0, nonzeros = 0, entries = 0;
  while (!rows.empty() && std::ssize(few) <= kFewFailures + groups) {
    std::vector<uint32_t> nearest = Nearest(rows, vector_rows, /*alike=*/true);
    remover.Remove(nearest, rows);
    if (std::ssize(nearest) < vector_rows) {
      few.push_back(std::move(nearest));
      continue;
    }
    ++groups;
    for (uint32_t row : nearest) nonzeros += std::ssize(patterns_.Of(row));
    entries += vector_rows * Columns(nearest);
    if (groups >= kFewGroups && static_cast<double>(nonzeros) < least_fill * static_cast<double>(entries)) return {};
    Append(nearest, order);
  }
  std::ranges::stable_sort(few, std::greater<>(), [](const auto& alike) { return alike.size(); });
  std::vector<uint32_t> left;
  for (const std::vector<uint32_t>& alike : few) Append(alike, left);
  Append(rows, left);
  if (std::ssize(left) > most_left) return std::nullopt;
  Append(empty_, left);
  while (!left.empty()) {
    const std::vector<uint32_t> nearest = Nearest(left, vector_rows, /*alike=*/false);
    remover.Remove(nearest, left);
    Append(nearest, order);
  }
  return order;
}

}  // namespace swizzle
