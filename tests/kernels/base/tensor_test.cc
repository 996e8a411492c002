#include "kernels/base/tensor.h"

#include <gtest/gtest.h>

#include <limits>

namespace swizzle {
namespace {

TEST(TensorTest, EveryNameFindsItsType) {
  for (int i = 0; i <= static_cast<int>(DType::kString); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype);
  }
  EXPECT_EQ(DTypeFromName("FP8"), std::nullopt);
  EXPECT_EQ(DTypeFromName(""), std::nullopt);
}

TEST(TensorTest, NamesAndSizesOfTheProtocol) {
  EXPECT_EQ(DTypeName(DType::kFloat32), "FP32");
  EXPECT_EQ(DTypeName(DType::kBFloat16), "BF16");
  EXPECT_EQ(DTypeName(DType::kString), "BYTES");
  EXPECT_EQ(ElementBytes(DType::kBool), 1u);
  EXPECT_EQ(ElementBytes(DType::kBFloat16), 2u);
  EXPECT_EQ(ElementBytes(DType::kFloat32), 4u);
  EXPECT_EQ(ElementBytes(DType::kUint64), 8u);
  EXPECT_EQ(ElementBytes(DType::kString), 0u);
}

TEST(TensorTest, ShapeText) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText({-1, 28, 28}), "[-1,28,28]");
}

TEST(TensorTest, ElementCount) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({2, 3, 4}), 24);
  EXPECT_EQ(*ElementCount({2, 0, 4}), 0);
}

TEST(TensorTest, ElementCountRefusesWhatIsNoCount) {
  EXPECT_EQ(ElementCount({2, -1}).status().code(), StatusCode::kInvalidArgument);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ElementCount({huge, 2}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*ElementCount({huge, 1}), huge);
}

}  // namespace
}  // namespace swizzle
