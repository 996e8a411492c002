#include "model_loader/semantics/whole_numbers.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

template <typename T>
Tensor Wholes(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

Tensor Scales(const std::vector<float>& values) {
  return Tensor::Floats({static_cast<int64_t>(values.size())}, values);
}

TEST(WholeNumbersTest, ZeroPointsOfZeroAreLeftOut) {
  const Tensor zeros = Wholes<int8_t>(DType::kInt8, {2}, {0, 0}), others = Wholes<int8_t>(DType::kInt8, {2}, {0, -3});
  const auto without = QuantisationOf(Scales({1, 2}), nullptr, DType::kInt8);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(*without, *QuantisationOf(Scales({1, 2}), &zeros, DType::kInt8));
  EXPECT_THAT(QuantisationOf(Scales({1, 2}), &others, DType::kInt8)->zero_points, ElementsAre(0, -3));
}

TEST(WholeNumbersTest, RefusesWhatIsNoScale) {
  EXPECT_FALSE(QuantisationOf(Scales({-1}), nullptr, DType::kInt8).ok());
  EXPECT_FALSE(QuantisationOf(Scales({INFINITY}), nullptr, DType::kInt8).ok());
  EXPECT_FALSE(QuantisationOf(Scales({}), nullptr, DType::kInt8).ok());
  EXPECT_FALSE(QuantisationOf(Scales({1}), nullptr, DType::kInt16).ok());
  const Tensor two = Wholes<int8_t>(DType::kInt8, {2}, {0, 0});
  EXPECT_FALSE(QuantisationOf(Scales({1}), &two, DType::kInt8).ok());
  EXPECT_EQ(QuantisationOf(Scales({0}), nullptr, DType::kInt8)->scales[0], 1.0f) << "channels of zeros have it";
}

TEST(WholeNumbersTest, ThereAndBackByChannelsOfAnyDimension) {
  const Tensor zeros = Wholes<uint8_t>(DType::kUint8, {2}, {128, 10});
  const Tensor wholes = Wholes<uint8_t>(DType::kUint8, {2, 2, 1}, {128, 12, 255, 0});
  const auto reals = DequantisedTensor(wholes, Scales({0.5f, 2}), &zeros, 1);
  ASSERT_TRUE(reals.ok()) << reals.status();
  EXPECT_THAT(reals->floats(), ElementsAre(0, 4, 63.5f, -20));
  const auto quantisation = QuantisationOf(Scales({0.5f, 2}), &zeros, DType::kUint8);
  EXPECT_EQ(*QuantisedTensor(*reals, *quantisation, -2), wholes) << "dimensions count from the end, too";
  EXPECT_FALSE(DequantisedTensor(wholes, Scales({0.5f, 2}), &zeros, 2).ok());
  EXPECT_FALSE(DequantisedTensor(wholes, Scales({0.5f, 2}), &zeros, 3).ok());
}

TEST(WholeNumbersTest, RoundsToEvenAndSaturates) {
  const Tensor reals = Tensor::Floats({6}, std::vector<float>{0.5f, 1.5f, -0.5f, 300, -300, NAN});
  const auto wholes = QuantisedTensor(reals, {DType::kInt8, {1.0f}, {1}}, 0);
  EXPECT_EQ(*wholes, Wholes<int8_t>(DType::kInt8, {6}, {1, 3, 1, 127, -128, -128}));
}

TEST(WholeNumbersTest, BiasesHaveNoZeroPoint) {
  const Tensor bias = Wholes<int32_t>(DType::kInt32, {2}, {1 << 20, -3}),
               zero = Wholes<int32_t>(DType::kInt32, {1}, {1});
  EXPECT_THAT(DequantisedTensor(bias, Scales({0.5f}), nullptr, 0)->floats(), ElementsAre(float{1 << 19}, -1.5f));
  EXPECT_FALSE(DequantisedTensor(bias, Scales({0.5f}), &zero, 0).ok());
}

TEST(WholeNumbersTest, ClampsKeepWhatTheyDoNotMove) {
  const Quantised as = {DType::kUint8, 0.5f, 10};
  EXPECT_EQ(RangeOf(as).low, -5.0f);
  EXPECT_EQ(RangeOf(as).high, 122.5f);
  EXPECT_TRUE(ClampKeepsWholes(as, 0, INFINITY));
  EXPECT_TRUE(ClampKeepsWholes(as, -1.5f, 6));
  EXPECT_FALSE(ClampKeepsWholes(as, 0, 6.2f));
}

}  // namespace
}  // namespace swizzle
