#include "kernels/format/weight.h"

namespace swizzle {

size_t Weight::StoredBytes() const { return matrix.StoredBytes() + bias.size() * sizeof(float); }

int64_t Weight::DenseBytes() const {
  if (!HasValues(format())) return static_cast<int64_t>(StoredBytes());
  return (rows() * cols() + static_cast<int64_t>(bias.size())) * static_cast<int64_t>(sizeof(float));
}

DenseMatrix Weight::ToDense() const { return matrix.ToDense(); }

}  // namespace swizzle
