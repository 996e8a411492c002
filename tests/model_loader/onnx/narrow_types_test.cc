#include "model_loader/onnx/narrow_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/base/half.h"
#include "model_loader/onnx/onnx_reader.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;

std::vector<int> WholesOf(int64_t number, std::vector<uint8_t> bytes, int64_t elements) {
  std::vector<int> wholes;
  const NarrowType& type = *FindNarrowType(number);
  for (const std::byte byte : Widen(type, std::as_bytes(std::span(bytes)), elements)) {
    wholes.push_back(type.held == DType::kInt8 ? static_cast<int8_t>(byte) : static_cast<int>(byte));
  }
  return wholes;
}

float RealOf(int64_t number, uint8_t code) {
  const auto byte = static_cast<std::byte>(code);
  const auto wide = Widen(*FindNarrowType(number), {&byte, 1}, 1);
  uint16_t half = 0;
  std::memcpy(&half, wide.data(), sizeof(half));
  return FloatOfHalf(half);
}

TEST(NarrowTypesTest, WholeNumbersLieLowestFirst) {
  EXPECT_THAT(WholesOf(21, {0xf1, 0x08}, 3), ElementsAre(1, 15, 8));
  EXPECT_THAT(WholesOf(22, {0xf1, 0x08}, 3), ElementsAre(1, -1, -8));
  EXPECT_THAT(WholesOf(25, {0b11100100}, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(WholesOf(26, {0b11100100}, 4), ElementsAre(0, 1, -2, -1));
}

TEST(NarrowTypesTest, RealNumbersAreTheStandards) {
  constexpr int64_t kE4M3 = 17, kE4M3NoZero = 18, kE5M2 = 19, kE5M2NoZero = 20, kE2M1 = 23;
  EXPECT_EQ(RealOf(kE4M3, 0x38), 1.0f);
  EXPECT_EQ(RealOf(kE4M3, 0xfe), -448.0f);
  EXPECT_EQ(RealOf(kE4M3, 0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(RealOf(kE4M3, 0x7f)));
  EXPECT_EQ(RealOf(kE4M3NoZero, 0x40), 1.0f);
  EXPECT_EQ(RealOf(kE4M3NoZero, 0x7f), 240.0f);
  EXPECT_TRUE(std::isnan(RealOf(kE4M3NoZero, 0x80)));
  EXPECT_EQ(RealOf(kE5M2, 0x7b), 57344.0f);
  EXPECT_EQ(RealOf(kE5M2, 0xfc), -HUGE_VALF);
  EXPECT_EQ(RealOf(kE5M2NoZero, 0x7f), 57344.0f);
  EXPECT_EQ(RealOf(kE5M2NoZero, 0x01), 0x1p-17f);
  EXPECT_EQ(RealOf(kE2M1, 0x1), 0.5f);
  EXPECT_EQ(RealOf(kE2M1, 0xf), -6.0f);
  EXPECT_EQ(FindNarrowType(1), nullptr);
}

// y = MatMul(x, DequantizeLinear(w, 0.5)), where w is of a type that `type` numbers.
OnnxBuilder Weighted(int type, const std::string& bytes) {
  OnnxBuilder builder(21);
  builder.Input("x", {-1, 2}).Floats("scale", {}, {0.5f});
  auto& weight = *builder.graph().add_initializer();
  weight.set_name("w");
  weight.set_data_type(type);
  weight.add_dims(2);
  weight.add_dims(1);
  weight.set_raw_data(bytes);
  builder.Node("DequantizeLinear", {"w", "scale"}, {"r"}).Node("MatMul", {"x", "r"}, {"y"}).Output("y");
  return builder;
}

TEST(NarrowTypesTest, WeightsAreRead) {
  EXPECT_THAT(Weighted(22, std::string("\xf1", 1)).Read(), IsOk());
  EXPECT_THAT(Weighted(17, std::string("\x38\x40", 2)).Read(), IsOk());
  EXPECT_THAT(Weighted(22, std::string("\xf1\x01", 2)).Read(), IsError(StatusCode::kInvalidArgument, "bytes of data"));
}

TEST(NarrowTypesTest, OperatorsThatWouldTakeThemForWiderOnesAreNamed) {
  OnnxBuilder builder = Weighted(22, std::string("\xf1", 1));
  builder.graph().mutable_node(0)->set_op_type("Relu");
  builder.graph().mutable_node(0)->mutable_input()->RemoveLast();
  EXPECT_THAT(builder.Read(),
              IsError(StatusCode::kUnimplemented, "Relu node 'r_node' reads 'w', which has elements of"));
}

}  // namespace
}  // namespace swizzle
