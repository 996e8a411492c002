// A sparse weight for few requests (linear_csr.h): columns in groups that registers hold, rows in blocks of a vector's
// lanes, and blocks in parts that threads share. In a group a block has as many steps as its fullest row has nonzeros
// there; a step holds a value of each row, and its place in the group. Worked example, blocks of 2 rows and groups of 4
// columns, of
//     0 5 0 7 | 0 0 1 0        group 0, 2 steps:  values 5 2, 7 0   places 1 0, 3 0
//     2 0 0 0 | 0 0 0 0        group 1, 1 step:   values 1 0        places 2 0
//
// Of a part, cells (a block in a group) follow each other group by group, and within a group by rising number of steps:
// loops over steps are then foreseen. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_COLUMN_GROUPS_H_
#define SWIZZLE_KERNELS_CPU_CONV_COLUMN_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/format/csr.h"

namespace swizzle::cpu {

class ColumnGroups final : public PackedWeight {
 public:
  static constexpr int64_t kPartRows = 128;

  // REQUIRES: lanes divides kPartRows; at most 256 columns a group.
  ColumnGroups(const CsrMatrix& matrix, const std::vector<float>& bias, int64_t lanes, int64_t group_columns);

  struct Cell {
    uint8_t block = 0;  // of the part
    uint8_t steps = 0;  // at least 1
  };
  // What a part has to go through: cells of group g are [ends[g - 1], ends[g]).
  struct Part {
    const uint32_t* ends;  // of the group before the first on
    const Cell* cells;
    const float* values;  // `lanes` a step
    const uint8_t* places;
  };

  size_t bytes() const override;
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t groups() const { return groups_; }
  int64_t parts() const { return static_cast<int64_t>(first_step_.size()); }
  const float* bias() const { return bias_.data(); }  // of each row; zero if there is none
  Part At(int64_t part) const {
    const int64_t step = first_step_[static_cast<size_t>(part)] * lanes_;
    return {ends_.data() + part * (groups_ + 1), cells_.data(), values_.data() + step, places_.data() + step};
  }

 private:
  class Packing;

  const int64_t rows_, cols_, lanes_, groups_;
  std::vector<float> bias_, values_;
  std::vector<uint8_t> places_;
  std::vector<Cell> cells_;
  std::vector<uint32_t> ends_;       // by part and group, the first of each part being where its cells begin
  std::vector<int64_t> first_step_;  // by part
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_COLUMN_GROUPS_H_
