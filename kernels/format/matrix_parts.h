// What a matrix is made of, part by part: its size, its scalars and its arrays, each by name.
//
// A format names its parts once, in a function template that takes a visitor:
//
//   template <typename Self, typename Visitor>
//   static void VisitParts(Self& matrix, Visitor& visitor) {
//     visitor.Size(matrix.rows, matrix.cols);
//     visitor.Places("row offsets", matrix.row_offsets);
//     visitor.Places("column indices", matrix.col_indices, /*below=*/matrix.cols);
//     visitor.Values("values", matrix.values);
//   }
//
// From it follow how files hold the matrix, how many bytes that takes, and the hash of its places. The size comes
// first: what comes after may depend on it, also while the matrix is being read. Names stand in files, so they never
// change.
//
// Sinks and sources are single-owner.
#ifndef SWIZZLE_KERNELS_FORMAT_MATRIX_PARTS_H_
#define SWIZZLE_KERNELS_FORMAT_MATRIX_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/dtype.h"
#include "kernels/base/status.h"

namespace swizzle {

struct MatrixSize {
  int64_t rows = 0;
  int64_t cols = 0;
  bool operator==(const MatrixSize&) const = default;
};

// An array of a matrix, without its elements.
struct MatrixArray {
  enum class Role : uint8_t {
    kPlaces,  // says where nonzeros are: kernels are as fast as it lets them
    kValues,
  };
  std::string_view name;
  Role role;
  DType type;    // of the elements in memory
  DType stored;  // in a file: narrower for indices that are all below 65,536
};

// Takes a matrix apart.
class PartSink {
 public:
  virtual ~PartSink() = default;
  virtual void Scalar(std::string_view name, int64_t value) = 0;
  // `elements` are of array.type, and the caller's.
  virtual void Array(const MatrixArray& array, std::span<const std::byte> elements) = 0;
};

// Puts one together. What it gives comes from a file and may be anything.
class PartSource {
 public:
  virtual ~PartSource() = default;
  virtual StatusOr<int64_t> Scalar(std::string_view name) = 0;
  // Whole elements of array.stored. Valid as long as the source.
  virtual StatusOr<std::span<const std::byte>> Array(const MatrixArray& array) = 0;
};

namespace internal {

template <typename T>
inline constexpr DType kTypeOf = DType::kBool;  // of no array
template <>
inline constexpr DType kTypeOf<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kTypeOf<uint16_t> = DType::kUint16;
template <>
inline constexpr DType kTypeOf<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kTypeOf<uint64_t> = DType::kUint64;
template <>
inline constexpr DType kTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kTypeOf<float> = DType::kFloat32;

template <typename T>
constexpr MatrixArray Describe(std::string_view name, MatrixArray::Role role, DType type, int64_t below) {
  static_assert(kTypeOf<T> != DType::kBool, "files hold no arrays of this type");
  const bool narrow = type == DType::kUint32 && below > 0 && below <= int64_t{1} << 16;
  return {name, role, type, narrow ? DType::kUint16 : type};
}

// What the visitors below have in common: Places and Values both give Derived::Array a MatrixArray and the elements.
// Values of sixteen-bit floating-point types are held as bits and say which they are.
template <typename Derived>
class PartVisitor {
 public:
  // below: all elements are; 0: there is no such bound.
  template <typename Elements>
  void Places(std::string_view name, Elements& elements, int64_t below = 0) {
    using T = typename Elements::value_type;
    derived().Array(Describe<T>(name, MatrixArray::Role::kPlaces, kTypeOf<T>, below), elements);
  }
  template <typename Elements>
  void Values(std::string_view name, Elements& elements, DType type = kTypeOf<typename Elements::value_type>) {
    derived().Array(Describe<typename Elements::value_type>(name, MatrixArray::Role::kValues, type, 0), elements);
  }

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

}  // namespace internal

// Visits to find the size alone.
class PartSizer : public internal::PartVisitor<PartSizer> {
 public:
  void Size(int64_t rows, int64_t cols) { size = {rows, cols}; }
  void Scalar(std::string_view, int64_t) {}
  template <typename T>
  void Array(const MatrixArray&, const std::vector<T>&) {}

  MatrixSize size;
};

// Visits to give every scalar and array to a sink.
class PartWriter : public internal::PartVisitor<PartWriter> {
 public:
  explicit PartWriter(PartSink& sink) : sink_(sink) {}
  void Size(int64_t, int64_t) {}
  void Scalar(std::string_view name, int64_t value) { sink_.Scalar(name, value); }
  template <typename T>
  void Array(const MatrixArray& array, const std::vector<T>& elements) {
    sink_.Array(array, std::as_bytes(std::span(elements)));
  }

 private:
  PartSink& sink_;
};

// Visits to fill a matrix of this size from a source. After an error it fills in nothing more.
class PartReader : public internal::PartVisitor<PartReader> {
 public:
  PartReader(MatrixSize size, PartSource& source) : size_(size), source_(source) {}

  // A square matrix visits with the same variable twice, and keeps the second.
  void Size(int64_t& rows, int64_t& cols) {
    rows = size_.rows;
    cols = size_.cols;
  }

  void Scalar(std::string_view name, int64_t& value) {
    if (!status_.ok()) return;
    const StatusOr<int64_t> given = source_.Scalar(name);
    status_ = given.status();
    if (given.ok()) value = *given;
  }

  template <typename T>
  void Array(const MatrixArray& array, std::vector<T>& elements) {
    if (!status_.ok()) return;
    const StatusOr<std::span<const std::byte>> bytes = source_.Array(array);
    status_ = bytes.status();
    if (!bytes.ok()) return;
    if (array.stored == array.type) {
      elements = Copied<T>(*bytes);
    } else {
      const std::vector<uint16_t> narrow = Copied<uint16_t>(*bytes);
      elements.assign(narrow.begin(), narrow.end());
    }
  }

  const Status& status() const { return status_; }

 private:
  template <typename T>
  static std::vector<T> Copied(std::span<const std::byte> bytes) {
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }

  const MatrixSize size_;
  PartSource& source_;
  Status status_;
};

// Visits to change the values.
class ValueChanger : public internal::PartVisitor<ValueChanger> {
 public:
  explicit ValueChanger(absl::FunctionRef<void(std::span<float>)> change) : change_(change) {}
  void Size(int64_t, int64_t) {}
  void Scalar(std::string_view, int64_t) {}
  template <typename T>
  void Array(const MatrixArray& array, std::vector<T>& elements) {
    if constexpr (std::is_same_v<T, float>) {
      if (array.role == MatrixArray::Role::kValues) change_(elements);
    }
  }

 private:
  const absl::FunctionRef<void(std::span<float>)> change_;
};

// Bytes that a file's arrays of this matrix take.
template <typename Matrix>
size_t StoredBytes(const Matrix& matrix) {
  class Sum final : public PartSink {
   public:
    void Scalar(std::string_view, int64_t) override {}
    void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
      bytes += elements.size() / ElementBytes(array.type) * ElementBytes(array.stored);
    }
    size_t bytes = 0;
  };
  Sum sum;
  PartWriter writer(sum);
  Matrix::VisitParts(matrix, writer);
  return sum.bytes;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_MATRIX_PARTS_H_
