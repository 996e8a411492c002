// A dense row-major matrix of float. Value type.
#ifndef SWIZZLE_KERNELS_FORMAT_DENSE_H_
#define SWIZZLE_KERNELS_FORMAT_DENSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

struct DenseMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;  // rows * cols, row-major

  // INVALID_ARGUMENT if the dimensions are negative or values has another size.
  Status Validate() const;
  int64_t CountNonzeros() const;
  size_t bytes() const { return values.size() * sizeof(float); }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_DENSE_H_
