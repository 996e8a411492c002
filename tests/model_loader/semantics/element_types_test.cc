#include "model_loader/semantics/element_types.h"

#include <cmath>

#include "gtest/gtest.h"
#include "model_loader/semantics/elements.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;

TEST(ElementTypesTest, NumbersAreThoseOfTensorProto) {
  EXPECT_EQ(*ElementTypeOf(1), DType::kFloat32);
  EXPECT_EQ(*ElementTypeOf(9), DType::kBool);
  EXPECT_EQ(*ElementTypeOf(13), DType::kUint64);
  EXPECT_EQ(*ElementTypeOf(16), DType::kBFloat16);
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{8}, int64_t{14}, int64_t{17}, int64_t{1} << 32}) {
    EXPECT_THAT(ElementTypeOf(number).status(), IsError(StatusCode::kUnimplemented, "ONNX data type")) << number;
  }
  const auto foldable = [](int64_t number) {
    Node cast;
    cast.attributes["to"] = number;
    return FoldableCastType(cast);
  };
  EXPECT_EQ(foldable(7), DType::kInt64);
  EXPECT_EQ(foldable(10), std::nullopt) << "no arithmetic is done in halves";
  EXPECT_EQ(foldable(8), std::nullopt);
}

TEST(ElementTypesTest, EveryTypeHasAComputeType) {
  for (int64_t number : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}) {
    const DType dtype = *ElementTypeOf(number);
    bool floating = false;
    size_t size = 0;
    EXPECT_TRUE(VisitElementType(dtype, [&]<typename T>(T element) {
      floating = std::is_floating_point_v<decltype(Widened(element))>;
      size = sizeof(T);
    }));
    EXPECT_EQ(floating, IsFloating(dtype)) << DTypeName(dtype);
    EXPECT_EQ(IsFloating(ComputeType(dtype)), IsFloating(dtype)) << DTypeName(dtype);
    EXPECT_EQ(size, ElementBytes(dtype)) << DTypeName(dtype);
  }
  EXPECT_FALSE(VisitElementType(DType::kString, [](auto) {}));
}

TEST(ElementTypesTest, CastsAsOnnxDoes) {
  EXPECT_EQ(Narrowed<int32_t>(-2.9f), -2);
  EXPECT_EQ(Narrowed<int64_t>(1e300), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Narrowed<int64_t>(-1e300), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Narrowed<int64_t>(std::nan("")), 0);
  EXPECT_EQ(Narrowed<uint8_t>(int64_t{300}), 44);
  EXPECT_EQ(Narrowed<BoolElement>(0.25f).byte, 1);
  EXPECT_EQ(Narrowed<BoolElement>(int64_t{256}).byte, 1);
  EXPECT_EQ(Narrowed<HalfElement>(1.0f).bits, 0x3C00);
  EXPECT_EQ(Narrowed<Bfloat16Element>(1.0f).bits, 0x3F80);
  EXPECT_EQ(Widened(HalfElement{0x3C00}), 1.0f);
  EXPECT_EQ(Widened(Bfloat16Element{0x3F80}), 1.0f);
  EXPECT_EQ(Widened(BoolElement{7}), 1);
}

TEST(ElementTypesTest, IntegersWrapIntoTheirWidth) {
  EXPECT_EQ(Wrapped(-1, DType::kUint8), 255);
  EXPECT_EQ(Wrapped(200, DType::kInt8), -56);
  EXPECT_EQ(Wrapped(int64_t{1} << 40, DType::kInt32), 0);
  EXPECT_EQ(Wrapped(-1, DType::kUint32), 0xFFFFFFFF);
  EXPECT_EQ(Wrapped(5, DType::kBool), 1);
  EXPECT_EQ(Wrapped(int64_t{1} << 40, DType::kInt64), int64_t{1} << 40);
}

}  // namespace
}  // namespace swizzle
