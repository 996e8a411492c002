#include "kernels/format/sr_bcrs.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/format/structure.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kVectorRows[] = {8, 4, 2};
constexpr double kLeastFill = 0.75;

Status ValidateCounts(const SrBcrsMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols >= kMaxUint32) {
    return InvalidArgument("SR-BCRS matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  if (std::ranges::find(kVectorRows, matrix.vector_rows) == std::end(kVectorRows)) {
    return InvalidArgument("SR-BCRS matrix has vectors of ", matrix.vector_rows, " rows; 2, 4 and 8 are possible");
  }
  if (matrix.stride < 1 || matrix.stride > SrBcrsMatrix::kMostStride) {
    return InvalidArgument("SR-BCRS matrix has a stride of ", matrix.stride, "; 1 to ", SrBcrsMatrix::kMostStride,
                           " are possible");
  }
  const auto pointers = static_cast<int64_t>(matrix.row_pointers.size());
  if (pointers != 2 * matrix.block_rows()) {
    return InvalidArgument("SR-BCRS matrix of ", matrix.block_rows(), " block rows has ", pointers,
                           " row pointers, not two each");
  }
  const auto vectors = static_cast<int64_t>(matrix.col_indices.size());
  if (vectors % matrix.stride != 0 || vectors > kMaxUint32) {
    return InvalidArgument("SR-BCRS matrix has ", vectors, " column indices, which are no whole strides of ",
                           matrix.stride);
  }
  if (static_cast<int64_t>(matrix.values.size()) != vectors * matrix.vector_rows) {
    return InvalidArgument("SR-BCRS matrix has ", matrix.values.size(), " values; ", vectors, " vectors of ",
                           matrix.vector_rows, " rows have ", vectors * matrix.vector_rows);
  }
  return absl::OkStatus();
}

Status ValidatePointers(const SrBcrsMatrix& matrix) {
  int64_t next = 0;
  for (int64_t block_row = 0; block_row < matrix.block_rows(); ++block_row) {
    const int64_t begin = matrix.row_pointers[2 * block_row], end = matrix.row_pointers[2 * block_row + 1];
    if (begin != next || end < begin) {
      return InvalidArgument("SR-BCRS block row ", block_row, " is vectors ", begin, " to ", end, "; it must begin at ",
                             next);
    }
    next = RoundUp(end, matrix.stride);
  }
  if (next != static_cast<int64_t>(matrix.col_indices.size())) {
    return InvalidArgument("SR-BCRS block rows end at vector ", next, " of ", matrix.col_indices.size());
  }
  return absl::OkStatus();
}

// REQUIRES: the pointers are valid.
Status ValidateVectors(const SrBcrsMatrix& matrix, int64_t block_row) {
  const int64_t begin = matrix.row_pointers[2 * block_row], end = matrix.row_pointers[2 * block_row + 1];
  const int64_t rows = std::min(matrix.vector_rows, matrix.rows - block_row * matrix.vector_rows);
  int64_t previous = -1;
  for (int64_t vector = begin; vector < RoundUp(end, matrix.stride); ++vector) {
    const int64_t col = matrix.col_indices[vector];
    if (vector < end && (col <= previous || col >= matrix.cols)) {
      return InvalidArgument("SR-BCRS block row ", block_row, ", vector ", vector, ": column ", col,
                             " does not come after ", previous, " below ", matrix.cols);
    }
    if (vector >= end && col != matrix.cols) {
      return InvalidArgument("SR-BCRS block row ", block_row, ", padding ", vector, ": column ", col, " is not ",
                             matrix.cols);
    }
    previous = col;
    for (int64_t row = vector < end ? rows : 0; row < matrix.vector_rows; ++row) {
      if (matrix.values[matrix.ValueAt(vector, row)] != 0) {
        return InvalidArgument("SR-BCRS block row ", block_row, ", vector ", vector,
                               ": a value of padding or past the last row is not zero");
      }
    }
  }
  return absl::OkStatus();
}

// The columns in which one of some neighbouring rows is not zero, rising.
std::vector<uint32_t> ColumnsOf(const DenseMatrix& dense, int64_t begin, int64_t end) {
  std::vector<uint32_t> columns;
  for (int64_t col = 0; col < dense.cols; ++col) {
    for (int64_t row = begin; row < end; ++row) {
      if (dense.values[row * dense.cols + col] == 0) continue;
      columns.push_back(static_cast<uint32_t>(col));
      break;
    }
  }
  return columns;
}

struct VectorCount {
  int64_t entries = 0;  // rows past the last do not count
  int64_t padded = 0;   // vectors, with padding
};

VectorCount CountVectors(const DenseMatrix& dense, int64_t vector_rows) {
  VectorCount count;
  for (int64_t row = 0; row < dense.rows; row += vector_rows) {
    const int64_t end = std::min(row + vector_rows, dense.rows);
    const auto vectors = std::ssize(ColumnsOf(dense, row, end));
    count.entries += vectors * (end - row);
    count.padded += RoundUp<int64_t>(vectors, SrBcrsMatrix::kDotStride);
  }
  return count;
}

}  // namespace

int64_t SrBcrsMatrix::nnz() const {
  return std::ranges::count_if(values, [](float value) { return value != 0; });
}

Status SrBcrsMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateCounts(*this));
  SWIZZLE_RETURN_IF_ERROR(ValidatePointers(*this));
  for (int64_t row = 0; row < block_rows(); ++row) SWIZZLE_RETURN_IF_ERROR(ValidateVectors(*this, row));
  return absl::OkStatus();
}

StatusOr<SrBcrsMatrix> SrBcrsMatrix::FromDense(const DenseMatrix& dense) {
  const int64_t nonzeros = dense.nnz();
  std::optional<int64_t> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int64_t vector_rows : kVectorRows) {
    const VectorCount count = CountVectors(dense, vector_rows);
    const int64_t words = count.padded * (vector_rows + 1) + 2 * CeilDiv(dense.rows, vector_rows);
    if (static_cast<double>(nonzeros) < kLeastFill * static_cast<double>(count.entries) || words >= least) continue;
    best = vector_rows, least = words;
  }
  if (best) return FromDense(dense, *best);
  return InvalidArgument("neighbouring rows of a ", dense.rows, " x ", dense.cols,
                         " matrix share too few columns for SR-BCRS; prune it by --method=vector-wise --vector=4");
}

SrBcrsMatrix SrBcrsMatrix::FromDense(const DenseMatrix& dense, int64_t vector_rows, int64_t stride) {
  SWIZZLE_CHECK(std::ranges::find(kVectorRows, vector_rows) != std::end(kVectorRows));
  SWIZZLE_CHECK(stride >= 1 && stride <= kMostStride && dense.cols < kMaxUint32);
  SrBcrsMatrix matrix{dense.rows, dense.cols, vector_rows, stride, {}, {}, {}};
  for (int64_t begin = 0; begin < dense.rows; begin += vector_rows) {
    const int64_t end = std::min(begin + vector_rows, dense.rows);
    const std::vector<uint32_t> columns = ColumnsOf(dense, begin, end);
    const int64_t first = std::ssize(matrix.col_indices), past = first + RoundUp<int64_t>(std::ssize(columns), stride);
    SWIZZLE_CHECK(past <= kMaxUint32);
    matrix.row_pointers.push_back(static_cast<uint32_t>(first));
    matrix.row_pointers.push_back(static_cast<uint32_t>(first + std::ssize(columns)));
    matrix.col_indices.insert(matrix.col_indices.end(), columns.begin(), columns.end());
    matrix.col_indices.resize(past, static_cast<uint32_t>(dense.cols));
    matrix.values.resize(past * vector_rows);
    for (int64_t i = 0; i < std::ssize(columns); ++i) {
      for (int64_t row = begin; row < end; ++row) {
        matrix.values[matrix.ValueAt(first + i, row - begin)] = dense.values[row * dense.cols + columns[i]];
      }
    }
  }
  return matrix;
}

DenseMatrix SrBcrsMatrix::ToDense() const {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t block_row = row / vector_rows;
    for (int64_t vector = row_pointers[2 * block_row]; vector < row_pointers[2 * block_row + 1]; ++vector) {
      dense.values[row * cols + col_indices[vector]] = values[ValueAt(vector, row % vector_rows)];
    }
  }
  return dense;
}

bool SrBcrsMatrix::Holds(const Structure& structure) {
  return structure.pattern == SparsityPattern::kBlocks && structure.block_rows >= std::ranges::min(kVectorRows);
}

std::vector<uint32_t> SrBcrsMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t block_row = row / vector_rows;
    for (int64_t vector = row_pointers[2 * block_row]; vector < row_pointers[2 * block_row + 1]; ++vector) {
      value_rows[ValueAt(vector, row % vector_rows)] = static_cast<uint32_t>(row);
    }
  }
  return value_rows;
}

void SrBcrsMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  std::vector<uint32_t> columns;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t block_row = row / vector_rows;
    columns.clear();
    for (int64_t vector = row_pointers[2 * block_row]; vector < row_pointers[2 * block_row + 1]; ++vector) {
      if (values[ValueAt(vector, row % vector_rows)] != 0) columns.push_back(col_indices[vector]);
    }
    visit(row, columns);
  }
}

}  // namespace swizzle
