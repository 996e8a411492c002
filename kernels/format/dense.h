// A dense row-major matrix of float. Value type.
#ifndef SWIZZLE_KERNELS_FORMAT_DENSE_H_
#define SWIZZLE_KERNELS_FORMAT_DENSE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/format/format.h"

namespace swizzle {

struct DenseMatrix {
  static constexpr Format kFormat = Format::kDense;

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;  // rows * cols, row-major

  // INVALID_ARGUMENT if the dimensions are negative or values has another size.
  Status Validate() const;
  int64_t nnz() const;  // counts
  const DenseMatrix& ToDense() const { return *this; }
  static const DenseMatrix& FromDense(const DenseMatrix& dense) { return dense; }
  static bool Holds(const Structure&) { return true; }
  static std::optional<DenseMatrix> StackRows(std::span<const DenseMatrix* const> matrices);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Values("values", matrix.values);
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_DENSE_H_
