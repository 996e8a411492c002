// A tensor as the client sends and receives it: a plain value that owns its bytes.
#ifndef SWIZZLE_CLIENT_TENSOR_H_
#define SWIZZLE_CLIENT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace swizzle::client {

// Outermost dimension first.
using Shape = std::vector<int64_t>;

// Dense, row-major, little-endian. Invariant once it has passed Check: `data` holds as many bytes as shape and datatype
// say; for "BYTES", one (uint32 length, bytes) per element.
struct Tensor {
  std::string name;
  std::string datatype = "FP32";  // the Open Inference Protocol's name: "FP32", "INT64", "BYTES", ...
  Shape shape;
  std::string data;

  // The data as numbers. REQUIRES: T is the C++ type of `datatype`. The view dies with the tensor.
  template <typename T>
  std::span<const T> Values() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
};

// A tensor that holds a copy of `values`.
template <typename T>
Tensor MakeTensor(std::string name, std::string datatype, Shape shape, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return Tensor{std::move(name), std::move(datatype), std::move(shape),
                std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

// Bytes of one element: 4 for "FP32"; 0 for "BYTES" and for names that are not the protocol's.
size_t DatatypeBytes(const std::string& datatype);

// The product of the dimensions. INVALID_ARGUMENT if one is negative or the product is absurdly large.
absl::StatusOr<int64_t> ElementCount(const Shape& shape);

// INVALID_ARGUMENT unless the tensor's invariant holds.
absl::Status Check(const Tensor& tensor);

// Rows [begin, end) of the outermost dimension. REQUIRES: Check(tensor) is OK, a fixed-size datatype, and
// 0 <= begin <= end <= shape[0].
Tensor Rows(const Tensor& tensor, int64_t begin, int64_t end);

// "[1,28,28]".
std::string ShapeText(const Shape& shape);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_TENSOR_H_
