#include "kernels/base/dtype_row.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "kernels/base/half_bits.h"

namespace swizzle {
namespace {

constexpr DType kLast = DType::kString;

template <typename Visit>
void ForEachType(const Visit& visit) {
  for (int i = 0; i <= static_cast<int>(kLast); ++i) visit(static_cast<DType>(i));
}

template <typename T>
void ExpectNumbersOf(DType dtype, DTypeKind kind) {
  const DTypeRow& row = RowOf(dtype);
  EXPECT_EQ(row.kind, kind) << row.name;
  EXPECT_EQ(row.bytes, sizeof(T)) << row.name;
  EXPECT_EQ(row.digits, std::numeric_limits<T>::digits) << row.name;
}

TEST(DTypeRowTest, EachTypeIsFoundByWhatItIsCalled) {
  std::set<std::string_view> names;
  ForEachType([&](DType dtype) {
    const DTypeRow& row = RowOf(dtype);
    names.insert(row.name);
    EXPECT_EQ(DTypeFromName(row.name), dtype);
    EXPECT_EQ(DTypeWhere(&DTypeRow::onnx, row.onnx), dtype);
    EXPECT_TRUE(row.safetensors.empty() || DTypeWhere(&DTypeRow::safetensors, row.safetensors) == dtype) << row.name;
    EXPECT_TRUE(row.npy.empty() || DTypeWhere(&DTypeRow::npy, row.npy) == dtype) << row.name;
    EXPECT_EQ(row.npy.empty(), dtype == DType::kBFloat16 || dtype == DType::kString) << row.name;
    EXPECT_EQ(row.safetensors.empty(), dtype == DType::kString) << row.name;
  });
  EXPECT_EQ(names.size(), static_cast<size_t>(kLast) + 1);
  EXPECT_EQ(DTypeWhere(&DTypeRow::npy, ""), std::nullopt) << "BF16 has no name there";
  EXPECT_EQ(DTypeWhere(&DTypeRow::npy, ">f4"), std::nullopt);
  EXPECT_EQ(DTypeWhere(&DTypeRow::onnx, 0), std::nullopt);
  EXPECT_EQ(DTypeWhere(&DTypeRow::onnx, (int64_t{1} << 32) + 1), std::nullopt);
}

TEST(DTypeRowTest, NumbersAreThoseOfTheTypeInMemory) {
  ExpectNumbersOf<uint8_t>(DType::kUint8, DTypeKind::kUnsigned);
  ExpectNumbersOf<uint16_t>(DType::kUint16, DTypeKind::kUnsigned);
  ExpectNumbersOf<uint32_t>(DType::kUint32, DTypeKind::kUnsigned);
  ExpectNumbersOf<uint64_t>(DType::kUint64, DTypeKind::kUnsigned);
  ExpectNumbersOf<int8_t>(DType::kInt8, DTypeKind::kSigned);
  ExpectNumbersOf<int16_t>(DType::kInt16, DTypeKind::kSigned);
  ExpectNumbersOf<int32_t>(DType::kInt32, DTypeKind::kSigned);
  ExpectNumbersOf<int64_t>(DType::kInt64, DTypeKind::kSigned);
  ExpectNumbersOf<float>(DType::kFloat32, DTypeKind::kReal);
  ExpectNumbersOf<double>(DType::kFloat64, DTypeKind::kReal);
  ExpectNumbersOf<bool>(DType::kBool, DTypeKind::kTruth);
}

TEST(DTypeRowTest, AHalfHoldsItsDigitsAndNoMore) {
  ForEachType([](DType dtype) {
    const DTypeRow& row = RowOf(dtype);
    EXPECT_EQ(IsHalf(dtype), row.kind == DTypeKind::kReal && row.bytes == sizeof(uint16_t)) << row.name;
    if (!IsHalf(dtype)) return;
    const auto held = [&](int whole) { return FloatOfHalfBits(HalfBits(static_cast<float>(whole), dtype), dtype); };
    const int end = 1 << row.digits;
    EXPECT_EQ(held(end - 1), static_cast<float>(end - 1)) << row.name;
    EXPECT_NE(held(end + 1), static_cast<float>(end + 1)) << row.name;
  });
}

}  // namespace
}  // namespace swizzle
