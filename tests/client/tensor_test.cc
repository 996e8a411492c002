#include "client/tensor.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TensorTest, KnowsTheSizesOfDatatypes) {
  EXPECT_EQ(DatatypeBytes("FP32"), 4u);
  EXPECT_EQ(DatatypeBytes("BOOL"), 1u);
  EXPECT_EQ(DatatypeBytes("INT64"), 8u);
  EXPECT_EQ(DatatypeBytes("BYTES"), 0u);
  EXPECT_EQ(DatatypeBytes("float"), 0u);
}

TEST(TensorTest, CountsElements) {
  EXPECT_EQ(ElementCount({}).value(), 1);
  EXPECT_EQ(ElementCount({2, 3, 4}).value(), 24);
  EXPECT_EQ(ElementCount({5, 0}).value(), 0);
  EXPECT_FALSE(ElementCount({2, -1}).ok());
  EXPECT_FALSE(ElementCount({int64_t{1} << 32, int64_t{1} << 32}).ok());
}

TEST(TensorTest, ChecksSizes) {
  Tensor tensor{"x", "FP32", {2, 3}, std::string(24, '\0')};
  EXPECT_TRUE(Check(tensor).ok());
  tensor.data.pop_back();
  EXPECT_THAT(std::string(Check(tensor).message()), HasSubstr("tensor 'x' has 23 bytes; FP32 [2,3] needs 24"));
  tensor.datatype = "FP8";
  EXPECT_THAT(std::string(Check(tensor).message()), HasSubstr("unknown datatype 'FP8'"));
}

TEST(TensorTest, ChecksStrings) {
  const std::string two("\x01\0\0\0a\0\0\0\0", 9);
  EXPECT_TRUE(Check({"x", "BYTES", {2}, two}).ok());
  EXPECT_FALSE(Check({"x", "BYTES", {1}, two}).ok());
  EXPECT_FALSE(Check({"x", "BYTES", {3}, two}).ok());
  EXPECT_FALSE(Check({"x", "BYTES", {1}, std::string("\xff\xff\xff\xff", 4)}).ok());
}

TEST(TensorTest, SlicesRows) {
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = MakeTensor<int32_t>("x", "INT32", {3, 2}, values);
  const Tensor rows = Rows(tensor, 1, 3);
  EXPECT_EQ(rows.name, "x");
  EXPECT_THAT(rows.shape, ElementsAre(2, 2));
  EXPECT_THAT(rows.Values<int32_t>(), ElementsAre(3, 4, 5, 6));
  EXPECT_TRUE(Rows(tensor, 1, 1).data.empty());
}

}  // namespace
}  // namespace swizzle::client
