#include "kernels/cuda/int8/byte_panels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/integers.h"

namespace swizzle::cuda {
namespace {

constexpr int kRows = BytePanels::kRows, kStep = BytePanels::kStep;
constexpr int kClasses = 8;  // of columns, which shared memory holds in different banks

// The panel's columns in the order of their slots, filled up to whole steps by any others.
std::vector<int32_t> DealtOut(const std::vector<int32_t>& used, int64_t cols) {
  std::array<std::vector<int32_t>, kClasses> left;
  for (const int32_t column : used) left[column % kClasses].push_back(column);
  const int64_t slots = RoundUp<int64_t>(std::ssize(used), kStep);
  std::vector<int32_t> order;
  for (int64_t rest = std::ssize(used); std::ssize(order) < slots;) {
    // Of each eight slots the fullest classes give one; what is over comes last.
    std::array<int, kClasses> turn;
    for (int i = 0; i < kClasses; ++i) turn[i] = i;
    std::ranges::sort(turn, [&](int a, int b) { return left[a].size() > left[b].size(); });
    for (const int of : turn) {
      if (left[of].empty()) {
        // Another class's column is needed in this slot as long as there are more columns than steps have room for.
        const int64_t room = slots - std::ssize(order);
        const int fullest = *std::ranges::max_element(turn, {}, [&](int c) { return left[c].size(); });
        if (rest == room && !left[fullest].empty()) {
          order.push_back(left[fullest].back());
          left[fullest].pop_back();
          --rest;
        } else {
          order.push_back(static_cast<int32_t>(of < cols ? of : 0));
        }
        continue;
      }
      order.push_back(left[of].back());
      left[of].pop_back();
      --rest;
    }
  }
  return order;
}

// Digits to a base of 256, the lower first; the last has the rest.
int DigitOf(int value, int digit, int digits) {
  if (digit == digits - 1) return value >> 8 * digit;
  return value >> 8 * digit & 255;
}

class Packer {
 public:
  Packer(std::span<const std::vector<WholeEntry>> rows, int64_t cols, int bits)
      : rows_(rows), cols_(cols), bits_(bits), slot_of_(cols, -1) {}

  PackedPanels Pack() {
    for (size_t row = 0; row < rows_.size(); row += kRows) AddPanel(row);
    std::ranges::stable_sort(packed_.panels, [](const BytePanel& a, const BytePanel& b) { return a.steps > b.steps; });
    return std::move(packed_);
  }

 private:
  void AddPanel(size_t first) {
    const auto rows = rows_.subspan(first, std::min<size_t>(kRows, rows_.size() - first));
    std::vector<int32_t> used;
    for (const auto& row : rows) {
      for (const WholeEntry& entry : row) {
        if (entry.value == 0 || slot_of_[entry.column] != -1) continue;
        slot_of_[entry.column] = 0;
        used.push_back(entry.column);
      }
    }
    std::ranges::sort(used);
    const std::vector<int32_t> order = DealtOut(used, cols_);
    const size_t step = packed_.columns.size() / kStep, steps = order.size() / kStep;
    packed_.panels.push_back(
        {static_cast<uint32_t>(step), static_cast<uint32_t>(steps), static_cast<uint32_t>(first), 0});
    packed_.columns.resize((step + steps) * kStep);
    packed_.weights.resize((step + steps) * BytePanels::StepBytes(bits_));
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t slot = i % kStep;
      packed_.columns[(step + i / kStep) * kStep + slot % 4 * 8 + slot / 4] = static_cast<uint16_t>(order[i]);
    }
    // What fills steps up may repeat a used column: the first of its slots counts.
    for (size_t i = order.size(); i > 0; --i) slot_of_[order[i - 1]] = static_cast<int32_t>(i - 1);
    for (size_t row = 0; row < rows.size(); ++row) {
      for (const WholeEntry& entry : rows[row]) {
        if (entry.value != 0) AddWeight(step, static_cast<int>(row), slot_of_[entry.column], entry.value);
      }
    }
    for (const int32_t column : order) slot_of_[column] = -1;
  }

  void AddWeight(size_t first_step, int row, int slot, int value) {
    uint8_t* to = packed_.weights.data() + (first_step + slot / kStep) * BytePanels::StepBytes(bits_);
    const int place = BytePanels::PlaceInStep(row, slot % kStep), word = place / 4 % 2;
    const int digits = CeilDiv(bits_, 8);
    for (int digit = 0; digit < digits; ++digit) {
      const int part = DigitOf(value, digit, digits);
      const bool half = digit == digits - 1 && bits_ % 8 != 0;
      if (half) {
        to[place / 8 * 4 + place % 4] |= static_cast<uint8_t>((part & 15) << 4 * word);
      } else {
        to[place] = static_cast<uint8_t>(part);
      }
      to += BytePanels::StepBytes(8);
    }
  }

  const std::span<const std::vector<WholeEntry>> rows_;
  const int64_t cols_;
  const int bits_;
  std::vector<int32_t> slot_of_;  // of a column, in the panel
  PackedPanels packed_;
};

}  // namespace

PackedPanels BytePanels::Pack(std::span<const std::vector<WholeEntry>> rows, int64_t cols, int bits) {
  return Packer(rows, cols, bits).Pack();
}

StatusOr<std::unique_ptr<BytePanels>> BytePanels::Make(std::span<const std::vector<WholeEntry>> rows, int64_t cols,
                                                       int bits) {
  return Upload(Pack(rows, cols, bits), static_cast<int64_t>(rows.size()), cols, bits);
}

StatusOr<std::unique_ptr<BytePanels>> BytePanels::Upload(const PackedPanels& packed, int64_t rows, int64_t cols,
                                                         int bits) {
  std::unique_ptr<BytePanels> made(new BytePanels);
  made->rows_ = rows;
  made->cols_ = cols;
  made->bits_ = bits;
  SWIZZLE_ASSIGN_OR_RETURN(made->panels_, DeviceArray<BytePanel>::Upload(packed.panels));
  SWIZZLE_ASSIGN_OR_RETURN(made->columns_, DeviceArray<uint16_t>::Upload(packed.columns));
  SWIZZLE_ASSIGN_OR_RETURN(made->weights_, DeviceArray<uint8_t>::Upload(packed.weights));
  return made;
}

StatusOr<std::unique_ptr<BytePanels>> BytePanels::Make(const SrBcrsMatrix& matrix, int bits) {
  if (matrix.cols < 1 || matrix.cols > kMostColumns) {
    return InvalidArgument("a matrix of ", matrix.cols, " columns; 1 to ", kMostColumns, " are possible");
  }
  const float most = static_cast<float>(1 << (bits - 1));
  std::vector<std::vector<WholeEntry>> rows(matrix.rows);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const int64_t block_row = row / matrix.vector_rows;
    for (int64_t i = matrix.row_pointers[2 * block_row]; i < matrix.row_pointers[2 * block_row + 1]; ++i) {
      const float value = matrix.values[matrix.ValueAt(i, row % matrix.vector_rows)];
      if (!(value >= -most && value < most && value == std::nearbyint(value))) {
        return InvalidArgument("row ", row, ": ", value, " is no whole number of ", bits, " bits");
      }
      rows[row].push_back({static_cast<int32_t>(matrix.col_indices[i]), static_cast<int32_t>(value)});
    }
  }
  return Make(rows, matrix.cols, bits);
}

}  // namespace swizzle::cuda
