#include "kernels/format/weight.h"

#include "kernels/format/whole_values.h"

namespace swizzle {

namespace {

class ValueCount final : public PartSink {
 public:
  void Scalar(std::string_view, int64_t) override {}
  void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
    if (array.role == MatrixArray::Role::kValues) values += elements.size() / ElementBytes(array.type);
  }
  size_t values = 0;
};

}  // namespace

size_t Weight::StoredBytes() const {
  const size_t bytes = matrix.StoredBytes() + bias.size() * sizeof(float);
  if (!HasWholeValues(*this)) return bytes;
  ValueCount count;
  matrix.Write(count);
  return bytes - count.values * (sizeof(float) - 1);
}

int64_t Weight::DenseBytes() const {
  if (!HasValues(format())) return static_cast<int64_t>(StoredBytes());
  return (rows() * cols() + static_cast<int64_t>(bias.size())) * static_cast<int64_t>(sizeof(float));
}

DenseMatrix Weight::ToDense() const { return matrix.ToDense(); }

}  // namespace swizzle
