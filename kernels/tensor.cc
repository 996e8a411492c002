#include "kernels/tensor.h"

#include <array>

namespace swizzle {
namespace {

struct DTypeFacts {
  std::string_view name;
  size_t bytes;
};

// Indexed by DType.
constexpr std::array<DTypeFacts, 14> kDTypes = {{
    {"BOOL", 1},
    {"UINT8", 1},
    {"UINT16", 2},
    {"UINT32", 4},
    {"UINT64", 8},
    {"INT8", 1},
    {"INT16", 2},
    {"INT32", 4},
    {"INT64", 8},
    {"FP16", 2},
    {"FP32", 4},
    {"FP64", 8},
    {"BF16", 2},
    {"BYTES", 0},
}};
static_assert(static_cast<size_t>(DType::kString) + 1 == kDTypes.size());

const DTypeFacts& FactsOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

}  // namespace

size_t ElementBytes(DType dtype) { return FactsOf(dtype).bytes; }

std::string_view DTypeName(DType dtype) { return FactsOf(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i == 0 ? "" : ",", shape[i]);
  return text + "]";
}

StatusOr<int64_t> ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return InvalidArgument("shape ", ShapeText(shape), " has a negative dimension");
    if (__builtin_mul_overflow(count, dimension, &count)) {
      return InvalidArgument("shape ", ShapeText(shape), " has more elements than fit in 64 bits");
    }
  }
  return count;
}

}  // namespace swizzle
