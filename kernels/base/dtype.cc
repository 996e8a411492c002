#include "kernels/base/dtype.h"

#include <array>

#include "kernels/base/dtype_row.h"

namespace swizzle {
namespace {

using enum DTypeKind;

// Indexed by DType.
constexpr std::array<DTypeRow, 14> kRows = {{
    {"BOOL", 1, kTruth, 1, 9, "BOOL", "|b1"},
    {"UINT8", 1, kUnsigned, 8, 2, "U8", "|u1"},
    {"UINT16", 2, kUnsigned, 16, 4, "U16", "<u2"},
    {"UINT32", 4, kUnsigned, 32, 12, "U32", "<u4"},
    {"UINT64", 8, kUnsigned, 64, 13, "U64", "<u8"},
    {"INT8", 1, kSigned, 7, 3, "I8", "|i1"},
    {"INT16", 2, kSigned, 15, 5, "I16", "<i2"},
    {"INT32", 4, kSigned, 31, 6, "I32", "<i4"},
    {"INT64", 8, kSigned, 63, 7, "I64", "<i8"},
    {"FP16", 2, kReal, 11, 10, "F16", "<f2"},
    {"FP32", 4, kReal, 24, 1, "F32", "<f4"},
    {"FP64", 8, kReal, 53, 11, "F64", "<f8"},
    {"BF16", 2, kReal, 8, 16, "BF16", ""},
    {"BYTES", 0, kText, 0, 8, "", ""},
}};
static_assert(static_cast<size_t>(DType::kString) + 1 == kRows.size());

template <typename Column, typename Value>
std::optional<DType> Find(Column DTypeRow::*column, const Value& value) {
  if (value == Value{}) return std::nullopt;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].*column == value) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace

const DTypeRow& RowOf(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }
std::optional<DType> DTypeWhere(std::string_view DTypeRow::*column, std::string_view value) {
  return Find(column, value);
}
std::optional<DType> DTypeWhere(int DTypeRow::*column, int64_t value) { return Find(column, value); }

size_t ElementBytes(DType dtype) { return RowOf(dtype).bytes; }
std::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }
std::optional<DType> DTypeFromName(std::string_view name) { return Find(&DTypeRow::name, name); }

}  // namespace swizzle
