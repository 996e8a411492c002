#include "kernels/format/shfl_bw.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/integers.h"
#include "kernels/base/mutex.h"
#include "kernels/format/row_patterns.h"
#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kVectorRows[] = {128, 64, 32, 16};
constexpr double kLeastFill = 0.75;
constexpr double kAsGood = 1.05;      // entries of longer vectors, over the fewest
constexpr double kNearlyFull = 0.99;  // of which no better grouping is looked for

Status ValidateCounts(const ShflBwMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols > kMaxUint32) {
    return InvalidArgument("Shfl-BW matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  if (matrix.vector_rows < 1 || matrix.vector_rows > ShflBwMatrix::kMostVectorRows) {
    return InvalidArgument("Shfl-BW matrix has vectors of ", matrix.vector_rows, " rows; 1 to ",
                           ShflBwMatrix::kMostVectorRows, " are possible");
  }
  if (static_cast<int64_t>(matrix.row_order.size()) != matrix.rows) {
    return InvalidArgument("Shfl-BW matrix of ", matrix.rows, " rows has an order of ", matrix.row_order.size());
  }
  const int64_t groups = CeilDiv(matrix.rows, matrix.vector_rows);
  if (static_cast<int64_t>(matrix.group_offsets.size()) != groups + 1) {
    return InvalidArgument("Shfl-BW matrix of ", groups, " groups has ", matrix.group_offsets.size(),
                           " group offsets, not ", groups + 1);
  }
  if (matrix.group_offsets.front() != 0 || matrix.group_offsets.back() != matrix.vectors()) {
    return InvalidArgument("Shfl-BW group offsets run from ", matrix.group_offsets.front(), " to ",
                           matrix.group_offsets.back(), "; they must run from 0 to ", matrix.vectors());
  }
  if (static_cast<int64_t>(matrix.values.size()) != matrix.vectors() * matrix.vector_rows) {
    return InvalidArgument("Shfl-BW matrix has ", matrix.values.size(), " values; ", matrix.vectors(), " vectors of ",
                           matrix.vector_rows, " rows have ", matrix.vectors() * matrix.vector_rows);
  }
  return absl::OkStatus();
}

Status ValidateOrder(const ShflBwMatrix& matrix) {
  std::vector<bool> seen(matrix.rows);
  for (int64_t place = 0; place < matrix.rows; ++place) {
    const uint32_t row = matrix.row_order[place];
    if (row >= matrix.rows) {
      return InvalidArgument("Shfl-BW place ", place, ": row ", row, " is not below ", matrix.rows);
    }
    if (seen[row]) return InvalidArgument("Shfl-BW place ", place, ": row ", row, " stands at another place too");
    seen[row] = true;
  }
  return absl::OkStatus();
}

// REQUIRES: the group's offsets lie within col_indices.
Status ValidateGroup(const ShflBwMatrix& matrix, int64_t group) {
  const int64_t rows = std::min(matrix.vector_rows, matrix.rows - group * matrix.vector_rows);
  int64_t previous = -1;
  for (uint32_t i = matrix.group_offsets[group]; i < matrix.group_offsets[group + 1]; ++i) {
    const int64_t col = matrix.col_indices[i];
    if (col >= matrix.cols) {
      return InvalidArgument("Shfl-BW group ", group, ", vector ", i, ": column ", col, " is not below ", matrix.cols);
    }
    if (col <= previous) {
      return InvalidArgument("Shfl-BW group ", group, ", vector ", i, ": column ", col, " does not come after column ",
                             previous);
    }
    previous = col;
    const auto vector = std::span(matrix.values).subspan(i * matrix.vector_rows, matrix.vector_rows);
    if (std::ranges::any_of(vector.subspan(rows), [](float value) { return value != 0; })) {
      return InvalidArgument("Shfl-BW group ", group, ", vector ", i, ": a value past the last row is not zero");
    }
  }
  return absl::OkStatus();
}

// The groupings of a matrix that are full enough, the longest first, of equal lengths the simplest.
class GroupingChoice {
 public:
  struct Grouping {
    int64_t vector_rows, entries;
    std::vector<uint32_t> order;
  };

  // REQUIRES: patterns outlive this and have nonzeros.
  explicit GroupingChoice(const RowPatterns& patterns)
      : patterns_(patterns), nonzeros_(static_cast<double>(patterns.nonzeros())) {}

  // After those of its length.
  void Offer(int64_t vector_rows, std::vector<uint32_t> order) {
    const int64_t entries = patterns_.Entries(order, vector_rows);
    if (nonzeros_ < kLeastFill * static_cast<double>(entries)) return;
    const auto place = std::ranges::upper_bound(groupings_, vector_rows, std::greater<>(), &Grouping::vector_rows);
    groupings_.insert(place, {vector_rows, entries, std::move(order)});
  }

  // Of each length at which one would be the best, if there is such a one. They cost more than others: REQUIRES: these
  // were offered.
  void OfferLikeRows() {
    if (const Grouping* best = Best(); best != nullptr && Fill(*best) >= kNearlyFull) return;
    constexpr int64_t kMostWork = int64_t{1} << 31;  // words of 64 columns: seconds
    const int64_t shortest = std::ranges::min(kVectorRows), words = CeilDiv<int64_t>(patterns_.cols(), 64);
    if (patterns_.rows() > kMostWork / (words * CeilDiv(patterns_.rows(), shortest))) return;
    const LikeRows like(patterns_);
    if (!like.Any(shortest)) return;
    for (int64_t vector_rows : kVectorRows) {
      const double most = MostEntries(vector_rows);
      if (most < nonzeros_) continue;
      if (auto order = like.InGroups(vector_rows, most)) Offer(vector_rows, *std::move(order));
    }
  }

  // Null for none.
  const Grouping* Best() const {
    if (groupings_.empty()) return nullptr;
    const double most = kAsGood * static_cast<double>(Least());
    return &*std::ranges::find_if(
        groupings_, [&](const Grouping& grouping) { return static_cast<double>(grouping.entries) <= most; });
  }

  double Fill(const Grouping& grouping) const { return nonzeros_ / static_cast<double>(grouping.entries); }

 private:
  int64_t Least() const { return std::ranges::min_element(groupings_, {}, &Grouping::entries)->entries; }

  // With which a further one of this length would be the best.
  double MostEntries(int64_t vector_rows) const {
    const double most = nonzeros_ / kLeastFill;
    const Grouping* const best = Best();
    if (best == nullptr) return most;
    return std::min(most, vector_rows > best->vector_rows ? kAsGood * static_cast<double>(Least())
                                                          : static_cast<double>(best->entries) / kAsGood);
  }

  const RowPatterns& patterns_;
  const double nonzeros_;
  std::vector<Grouping> groupings_;
};

// What was found for the patterns asked about last: each row of a table of kernels asks.
class FoundGroupings {
 public:
  std::optional<RowGrouping> FindOr(const RowPatterns& patterns, const auto& find) {
    const Key key = {patterns.fingerprint(), {patterns.rows(), patterns.cols(), patterns.nonzeros()}};
    {
      MutexLock lock(mutex_);
      const auto found = std::ranges::find(kept_, key, &Kept::key);
      if (found != kept_.end()) return found->grouping;
    }
    std::optional<RowGrouping> grouping = find(patterns);
    MutexLock lock(mutex_);
    kept_[next_++ % kept_.size()] = {key, grouping};
    return grouping;
  }

 private:
  using Key = std::pair<RowPatterns::Fingerprint, std::array<int64_t, 3>>;
  struct Kept {
    Key key = {};
    std::optional<RowGrouping> grouping;
  };
  Mutex mutex_;
  std::array<Kept, 16> kept_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The columns in which a row of the group is not zero, rising.
std::vector<uint32_t> ColumnsOf(const DenseMatrix& dense, std::span<const uint32_t> rows) {
  std::vector<uint8_t> used(dense.cols);
  for (uint32_t row : rows) {
    const float* const values = dense.values.data() + row * dense.cols;
    for (int64_t col = 0; col < dense.cols; ++col) used[col] |= values[col] != 0 ? 1 : 0;
  }
  std::vector<uint32_t> columns;
  for (int64_t col = 0; col < dense.cols; ++col) {
    if (used[col] != 0) columns.push_back(static_cast<uint32_t>(col));
  }
  return columns;
}

// REQUIRES: there are nonzeros.
std::optional<RowGrouping> GroupingOf(const RowPatterns& patterns) {
  const std::vector<uint32_t> sorted = patterns.Sorted();
  GroupingChoice choice(patterns);
  for (int64_t vector_rows : kVectorRows) {
    choice.Offer(vector_rows, RowsInOrder(patterns.rows()));
    choice.Offer(vector_rows, patterns.InGroups(sorted, vector_rows));
  }
  choice.OfferLikeRows();
  const GroupingChoice::Grouping* const best = choice.Best();
  if (best == nullptr) return std::nullopt;
  return RowGrouping{best->vector_rows, best->order, choice.Fill(*best)};
}

}  // namespace

std::optional<RowGrouping> FindRowGrouping(const WeightMatrix& matrix) {
  static FoundGroupings found;
  const RowPatterns patterns(matrix);
  if (patterns.nonzeros() == 0) return std::nullopt;
  return found.FindOr(patterns, GroupingOf);
}

StatusOr<std::shared_ptr<const ShflBwMatrix>> GroupRows(const WeightMatrix& matrix) {
  if (matrix.As<ShflBwMatrix>() != nullptr) return matrix.In<ShflBwMatrix>();
  std::optional<RowGrouping> grouping = FindRowGrouping(matrix);
  if (!grouping) {
    const MatrixSize size = matrix.size();
    return InvalidArgument("the rows of a ", size.rows, " x ", size.cols,
                           " matrix share too few columns for Shfl-BW; prune it vector-wise or to Shfl-BW");
  }
  return std::make_shared<const ShflBwMatrix>(
      ShflBwMatrix::FromDense(matrix.ToDense(), grouping->vector_rows, std::move(grouping->row_order)));
}

int64_t ShflBwMatrix::nnz() const {
  return std::ranges::count_if(values, [](float value) { return value != 0; });
}

Status ShflBwMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateCounts(*this));
  SWIZZLE_RETURN_IF_ERROR(ValidateOrder(*this));
  for (int64_t group = 0; group < groups(); ++group) {
    if (group_offsets[group] > group_offsets[group + 1]) {
      return InvalidArgument("Shfl-BW group ", group, ": its offset ", group_offsets[group],
                             " is beyond the next group's, ", group_offsets[group + 1]);
    }
  }
  for (int64_t group = 0; group < groups(); ++group) SWIZZLE_RETURN_IF_ERROR(ValidateGroup(*this, group));
  return absl::OkStatus();
}

StatusOr<ShflBwMatrix> ShflBwMatrix::FromDense(const DenseMatrix& dense) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto grouped, GroupRows(WeightMatrix(dense)));
  return *grouped;
}

ShflBwMatrix ShflBwMatrix::FromDense(const DenseMatrix& dense, int64_t vector_rows, std::vector<uint32_t> row_order) {
  SWIZZLE_CHECK(vector_rows >= 1 && vector_rows <= kMostVectorRows);
  SWIZZLE_CHECK(static_cast<int64_t>(row_order.size()) == dense.rows && dense.cols <= kMaxUint32);
  ShflBwMatrix matrix;
  matrix.rows = dense.rows, matrix.cols = dense.cols, matrix.vector_rows = vector_rows;
  matrix.row_order = std::move(row_order);
  matrix.group_offsets = {0};
  for (int64_t begin = 0; begin < dense.rows; begin += vector_rows) {
    const auto members = std::span(matrix.row_order).subspan(begin, std::min(vector_rows, dense.rows - begin));
    for (uint32_t col : ColumnsOf(dense, members)) {
      matrix.col_indices.push_back(col);
      for (uint32_t row : members) matrix.values.push_back(dense.values[row * dense.cols + col]);
      matrix.values.resize(matrix.col_indices.size() * vector_rows);
    }
    SWIZZLE_CHECK(matrix.vectors() <= kMaxUint32);
    matrix.group_offsets.push_back(static_cast<uint32_t>(matrix.vectors()));
  }
  return matrix;
}

DenseMatrix ShflBwMatrix::ToDense() const {
  DenseMatrix dense{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  for (int64_t place = 0; place < rows; ++place) {
    const int64_t group = place / vector_rows;
    float* const row = dense.values.data() + row_order[place] * cols;
    for (uint32_t i = group_offsets[group]; i < group_offsets[group + 1]; ++i) {
      row[col_indices[i]] = values[i * vector_rows + place % vector_rows];
    }
  }
  return dense;
}

bool ShflBwMatrix::Holds(const Structure& structure) {
  const bool shared =
      structure.pattern == SparsityPattern::kRowVectors || structure.pattern == SparsityPattern::kBlocks;
  return shared && structure.block_rows >= std::ranges::min(kVectorRows);
}

std::optional<ShflBwMatrix> ShflBwMatrix::StackRows(std::span<const ShflBwMatrix* const> matrices) {
  ShflBwMatrix stacked;
  stacked.cols = matrices.front()->cols;
  stacked.vector_rows = matrices.front()->vector_rows;
  stacked.group_offsets = {0};
  for (const ShflBwMatrix* matrix : matrices) {
    if (matrix->vector_rows != stacked.vector_rows || stacked.rows % stacked.vector_rows != 0) return std::nullopt;
    if (stacked.vectors() + matrix->vectors() > kMaxUint32) return std::nullopt;
    const auto before = static_cast<uint32_t>(stacked.vectors());
    for (uint32_t row : matrix->row_order) stacked.row_order.push_back(static_cast<uint32_t>(stacked.rows) + row);
    for (int64_t group = 1; group <= matrix->groups(); ++group) {
      stacked.group_offsets.push_back(before + matrix->group_offsets[group]);
    }
    stacked.rows += matrix->rows;
    stacked.col_indices.insert(stacked.col_indices.end(), matrix->col_indices.begin(), matrix->col_indices.end());
    stacked.values.insert(stacked.values.end(), matrix->values.begin(), matrix->values.end());
  }
  return stacked;
}

void ShflBwMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  std::vector<int64_t> places(rows);
  for (int64_t place = 0; place < rows; ++place) places[row_order[place]] = place;
  std::vector<uint32_t> columns;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t group = places[row] / vector_rows, member = places[row] % vector_rows;
    columns.clear();
    for (uint32_t i = group_offsets[group]; i < group_offsets[group + 1]; ++i) {
      if (values[i * vector_rows + member] != 0) columns.push_back(col_indices[i]);
    }
    visit(row, columns);
  }
}

std::vector<uint32_t> ShflBwMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows(values.size());
  for (int64_t group = 0; group < groups(); ++group) {
    const int64_t first = group * vector_rows, members = std::min(vector_rows, rows - first);
    for (int64_t i = group_offsets[group]; i < group_offsets[group + 1]; ++i) {
      std::copy_n(row_order.begin() + first, members, value_rows.begin() + i * vector_rows);
    }
  }
  return value_rows;
}

}  // namespace swizzle
