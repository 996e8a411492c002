#include "client/tensor.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace swizzle::client {
namespace {

struct Datatype {
  const char* name;
  size_t bytes;
};

constexpr Datatype kDatatypes[] = {
    {"BOOL", 1},  {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4}, {"UINT64", 8}, {"INT8", 1}, {"INT16", 2},
    {"INT32", 4}, {"INT64", 8}, {"FP16", 2},   {"BF16", 2},   {"FP32", 4},   {"FP64", 8},
};

// Leaves room to multiply by the size of an element.
constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / 8;

bool IsSequenceOfBytes(const std::string& data, int64_t elements) {
  size_t at = 0;
  for (int64_t i = 0; i < elements; ++i) {
    uint32_t length;
    if (data.size() - at < sizeof(length)) return false;
    std::memcpy(&length, data.data() + at, sizeof(length));
    at += sizeof(length);
    if (data.size() - at < length) return false;
    at += length;
  }
  return at == data.size();
}

}  // namespace

size_t DatatypeBytes(const std::string& datatype) {
  for (const Datatype& known : kDatatypes) {
    if (datatype == known.name) return known.bytes;
  }
  return 0;
}

absl::StatusOr<int64_t> ElementCount(const Shape& shape) {
  bool empty = false;
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0)
      return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeText(shape), " has a negative dimension"));
    if (dimension == 0) {
      empty = true;
    } else if (count > kMaxElements / dimension) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeText(shape), " has too many elements"));
    } else {
      count *= dimension;
    }
  }
  return empty ? 0 : count;
}

absl::Status Check(const Tensor& tensor) {
  const absl::StatusOr<int64_t> elements = ElementCount(tensor.shape);
  if (!elements.ok()) return elements.status();
  if (tensor.datatype == "BYTES") {
    if (IsSequenceOfBytes(tensor.data, *elements)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' does not hold the ", *elements,
                                                   " length-prefixed strings of shape ", ShapeText(tensor.shape)));
  }
  const size_t element_bytes = DatatypeBytes(tensor.datatype);
  if (element_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name, "' has the unknown datatype '", tensor.datatype, "'"));
  }
  const size_t expected = static_cast<size_t>(*elements) * element_bytes;
  if (tensor.data.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' has ", tensor.data.size(), " bytes; ",
                                                 tensor.datatype, " ", ShapeText(tensor.shape), " needs ", expected));
}

Tensor Rows(const Tensor& tensor, int64_t begin, int64_t end) {
  const size_t row_bytes = tensor.shape[0] == 0 ? 0 : tensor.data.size() / tensor.shape[0];
  Tensor rows{tensor.name, tensor.datatype, tensor.shape,
              tensor.data.substr(begin * row_bytes, (end - begin) * row_bytes)};
  rows.shape[0] = end - begin;
  return rows;
}

std::string ShapeText(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

}  // namespace swizzle::client
