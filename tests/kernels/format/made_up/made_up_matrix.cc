#include "tests/kernels/format/made_up/made_up_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/format/structure.h"

namespace swizzle::testing {
namespace {

constexpr int64_t kWordBits = 64;
constexpr float kMostValue = 127;

int64_t WordsOf(int64_t cols) { return CeilDiv(cols, kWordBits); }

}  // namespace

Status MadeUpMatrix::Validate() const {
  if (rows < 0 || cols < 0 || row_words != WordsOf(cols)) {
    return InvalidArgument("made-up matrix of ", rows, " x ", cols, " has ", row_words, " words a row");
  }
  if (static_cast<int64_t>(bits.size()) != rows * row_words || static_cast<int64_t>(scales.size()) != rows) {
    return InvalidArgument("made-up matrix of ", rows, " rows has ", bits.size(), " words and ", scales.size(),
                           " scales");
  }
  int64_t set = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) % row_words * kWordBits;
    if (cols - begin < kWordBits && bits[i] >> (cols - begin) != 0) {
      return InvalidArgument("made-up matrix has bits beyond its ", cols, " columns");
    }
    set += std::popcount(bits[i]);
  }
  if (set != nnz()) return InvalidArgument("made-up matrix has ", nnz(), " values for ", set, " bits");
  return absl::OkStatus();
}

DenseMatrix MadeUpMatrix::ToDense() const {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  const int8_t* value = values.data();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      const bool set = bits[row * row_words + col / kWordBits] >> (col % kWordBits) & 1;
      if (set) dense.values[row * cols + col] = static_cast<float>(*value++) * scales[row];
    }
  }
  return dense;
}

MadeUpMatrix MadeUpMatrix::FromDense(const DenseMatrix& dense) {
  MadeUpMatrix matrix;
  matrix.rows = dense.rows;
  matrix.cols = dense.cols;
  matrix.row_words = WordsOf(dense.cols);
  matrix.bits.resize(matrix.rows * matrix.row_words);
  for (int64_t row = 0; row < dense.rows; ++row) {
    const auto values = std::span(dense.values).subspan(row * dense.cols, dense.cols);
    float largest = 0;
    for (float value : values) largest = std::max(largest, std::abs(value));
    matrix.scales.push_back(largest / kMostValue);
    for (int64_t col = 0; col < dense.cols; ++col) {
      if (values[col] == 0) continue;
      matrix.bits[row * matrix.row_words + col / kWordBits] |= uint64_t{1} << (col % kWordBits);
      matrix.values.push_back(static_cast<int8_t>(std::lround(values[col] / matrix.scales.back())));
    }
  }
  return matrix;
}

bool MadeUpMatrix::Holds(const Structure& structure) { return structure.pattern == SparsityPattern::kUnstructured; }

std::optional<MadeUpMatrix> MadeUpMatrix::StackRows(std::span<const MadeUpMatrix* const> matrices) {
  MadeUpMatrix stacked = *matrices.front();
  for (const MadeUpMatrix* matrix : matrices.subspan(1)) {
    stacked.rows += matrix->rows;
    stacked.bits.insert(stacked.bits.end(), matrix->bits.begin(), matrix->bits.end());
    stacked.values.insert(stacked.values.end(), matrix->values.begin(), matrix->values.end());
    stacked.scales.insert(stacked.scales.end(), matrix->scales.begin(), matrix->scales.end());
  }
  return stacked;
}

}  // namespace swizzle::testing
