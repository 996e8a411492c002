// Det, by elimination.
#include <algorithm>
#include <cmath>

#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

// Of a row-major matrix, which it overwrites; the largest element of each column is divided by.
double Eliminate(double* matrix, int64_t size) {
  double product = 1.0;
  for (int64_t column = 0; column < size; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < size; ++row) {
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column])) pivot = row;
    }
    double* const top = matrix + column * size;
    if (pivot != column) {
      std::swap_ranges(top, top + size, matrix + pivot * size);
      product = -product;
    }
    product *= top[column];
    if (top[column] == 0.0) return 0.0;
    for (int64_t row = column + 1; row < size; ++row) {
      double* const other = matrix + row * size;
      const double factor = other[column] / top[column];
      for (int64_t i = column; i < size; ++i) other[i] -= factor * top[i];
    }
  }
  return product;
}

}  // namespace

StatusOr<Array> Det(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  const int64_t size = x.shape.back();
  if (x.shape[x.shape.size() - 2] != size || !IsFloating(x.dtype)) {
    return InvalidArgument("input 0 is ", DTypeName(x.dtype), ShapeText(x.shape),
                           "; it must be floating, and its matrices square");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(x, DType::kFloat64));
  SWIZZLE_ASSIGN_OR_RETURN(Array matrix, call.New(DType::kFloat64, {size, size}));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat64, Shape(x.shape.begin(), x.shape.end() - 2)));
  const double* from = real.As<double>().data();
  for (double& determinant : y.Mutable<double>()) {
    std::copy_n(from, size * size, matrix.Mutable<double>().data());
    determinant = Eliminate(matrix.Mutable<double>().data(), size);
    from += size * size;
  }
  return call.As(y, x.dtype);
}

}  // namespace swizzle::interpreter
