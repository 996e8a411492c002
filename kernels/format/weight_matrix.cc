#include "kernels/format/weight_matrix.h"

#include <algorithm>

#include "kernels/format/format_row.h"

namespace swizzle {

StatusOr<WeightMatrix> WeightMatrix::FromDense(Format format, const DenseMatrix& dense) {
  return RowOf(format).from_dense(dense);
}

StatusOr<WeightMatrix> WeightMatrix::Read(Format format, MatrixSize size, PartSource& source) {
  SWIZZLE_ASSIGN_OR_RETURN(WeightMatrix matrix, RowOf(format).read(size, source));
  if (matrix.size() != size) {
    return InvalidArgument("no matrix of the format ", FormatName(format), " is ", size.rows, " x ", size.cols);
  }
  SWIZZLE_RETURN_IF_ERROR(matrix.Validate());
  return matrix;
}

std::optional<WeightMatrix> WeightMatrix::StackRows(std::span<const WeightMatrix* const> matrices) {
  const WeightMatrix& first = *matrices.front();
  const bool alike = std::ranges::all_of(matrices, [&](const WeightMatrix* matrix) {
    return matrix->format() == first.format() && matrix->size().cols == first.size().cols;
  });
  return alike ? first.held_->StackRows(matrices) : std::nullopt;
}

}  // namespace swizzle
