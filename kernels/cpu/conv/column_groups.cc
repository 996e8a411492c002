#include "kernels/cpu/conv/column_groups.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {

// Where each row's next nonzero is.
class ColumnGroups::Packing {
 public:
  Packing(ColumnGroups& packed, const CsrMatrix& matrix)
      : packed_(packed), matrix_(matrix), next_(matrix.row_offsets.begin(), matrix.row_offsets.end() - 1) {}

  // The cells of blocks [first_block, last_block) in the columns from `begin` to `end`.
  void AddGroup(int64_t first_block, int64_t last_block, int64_t begin, int64_t end) {
    std::vector<Cell> cells;
    for (int64_t block = first_block; block < last_block; ++block) {
      int64_t steps = 0;
      ForEachRowOf(block, [&](int64_t, int64_t row) { steps = std::max(steps, CountBelow(row, end)); });
      if (steps == 0) continue;
      cells.push_back({static_cast<uint8_t>(block - first_block), static_cast<uint8_t>(steps)});
    }
    std::ranges::stable_sort(cells, {}, &Cell::steps);
    for (const Cell& cell : cells) AddCell(first_block + cell.block, cell.steps, begin, end);
    packed_.cells_.insert(packed_.cells_.end(), cells.begin(), cells.end());
    packed_.ends_.push_back(static_cast<uint32_t>(packed_.cells_.size()));
  }

 private:
  template <typename Visit>
  void ForEachRowOf(int64_t block, const Visit& visit) const {
    const int64_t first = block * packed_.lanes_;
    for (int64_t lane = 0; lane < std::min(packed_.lanes_, packed_.rows_ - first); ++lane) visit(lane, first + lane);
  }

  // How many of the row's nonzeros that are not packed yet stand before the column.
  int64_t CountBelow(int64_t row, int64_t column) const {
    const auto first = matrix_.col_indices.begin() + next_[static_cast<size_t>(row)];
    const auto last = matrix_.col_indices.begin() + matrix_.row_offsets[static_cast<size_t>(row) + 1];
    return std::lower_bound(first, last, column) - first;
  }

  void AddCell(int64_t block, int64_t steps, int64_t begin, int64_t end) {
    const int64_t lanes = packed_.lanes_;
    const size_t at = packed_.values_.size();
    packed_.values_.resize(at + static_cast<size_t>(steps * lanes));
    packed_.places_.resize(at + static_cast<size_t>(steps * lanes));
    ForEachRowOf(block, [&](int64_t lane, int64_t row) {
      const int64_t count = CountBelow(row, end);
      for (int64_t i = 0; i < count; ++i) {
        const size_t from = next_[static_cast<size_t>(row)]++, to = at + static_cast<size_t>(i * lanes + lane);
        packed_.values_[to] = matrix_.values[from];
        packed_.places_[to] = static_cast<uint8_t>(matrix_.col_indices[from] - begin);
      }
    });
  }

  ColumnGroups& packed_;
  const CsrMatrix& matrix_;
  std::vector<uint32_t> next_;  // by row
};

ColumnGroups::ColumnGroups(const CsrMatrix& matrix, const std::vector<float>& bias, int64_t lanes,
                           int64_t group_columns)
    : rows_(matrix.rows), cols_(matrix.cols), lanes_(lanes), groups_(CeilDiv(matrix.cols, group_columns)), bias_(bias) {
  bias_.resize(static_cast<size_t>(rows_));
  Packing packing(*this, matrix);
  const int64_t blocks = CeilDiv(rows_, lanes), of_part = kPartRows / lanes;
  for (int64_t first = 0; first < blocks; first += of_part) {
    first_step_.push_back(static_cast<int64_t>(values_.size()) / lanes);
    ends_.push_back(static_cast<uint32_t>(cells_.size()));
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t begin = group * group_columns;
      packing.AddGroup(first, std::min(first + of_part, blocks), begin, std::min(begin + group_columns, cols_));
    }
  }
}

size_t ColumnGroups::bytes() const {
  return (values_.size() + bias_.size()) * sizeof(float) + places_.size() + cells_.size() * sizeof(Cell) +
         ends_.size() * sizeof(uint32_t) + first_step_.size() * sizeof(int64_t);
}

}  // namespace swizzle::cpu
