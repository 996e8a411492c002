#include "kernels/base/dtype.h"

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

}  // namespace swizzle
