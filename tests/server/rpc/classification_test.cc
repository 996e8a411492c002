#include "server/rpc/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec SpecOf(DType dtype, Shape dims, int64_t max_batch_size = 8) {
  ModelSpec spec;
  spec.name = "M";
  spec.max_batch_size = max_batch_size;
  spec.outputs = {{"Y", dtype, std::move(dims)}};
  return spec;
}

template <typename T>
Result ResultOf(const std::vector<T>& values, Shape shape) {
  Result result;
  result.outputs = {std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
  result.shapes = {std::move(shape)};
  return result;
}

std::vector<std::string> Texts(const std::string& tensor) {
  std::vector<std::string> texts;
  for (size_t at = 0; at + sizeof(uint32_t) <= tensor.size();) {
    uint32_t length;
    std::memcpy(&length, tensor.data() + at, sizeof(length));
    texts.push_back(tensor.substr(at + sizeof(length), length));
    at += sizeof(length) + length;
  }
  return texts;
}

template <typename T>
std::vector<std::string> BestOf(DType dtype, const std::vector<T>& values, int64_t classes) {
  Result result = ResultOf(values, {1, static_cast<int64_t>(values.size())});
  const RequestedOutput asked[] = {{0, classes}};
  EXPECT_TRUE(Classify(SpecOf(dtype, {-1}), asked, result).ok());
  return Texts(result.outputs[0]);
}

TEST(Classify, EachRowHasItsBestWithTheirLabels) {
  ModelSpec spec = SpecOf(DType::kFloat32, {3});
  spec.outputs[0].labels = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"coat", "dress"});
  Result result = ResultOf<float>({0.1f, 0.7f, 0.2f, 5.0f, -1.0f, -0.5f}, {2, 3});
  const RequestedOutput asked[] = {{0, 2}};
  ASSERT_TRUE(Classify(spec, asked, result).ok());
  EXPECT_THAT(Texts(result.outputs[0]),
              ElementsAre("0.700000:1:dress", "0.200000:2", "5.000000:0:coat", "-0.500000:2"));
  EXPECT_THAT(result.shapes[0], ElementsAre(2, 2));
}

TEST(Classify, AnOutputThatIsAskedForAsATensorStays) {
  Result result = ResultOf<float>({1, 2}, {1, 2});
  const std::string before = result.outputs[0];
  const RequestedOutput asked[] = {{0}};
  ASSERT_TRUE(Classify(SpecOf(DType::kFloat32, {2}), asked, result).ok());
  EXPECT_EQ(result.outputs[0], before);
  EXPECT_THAT(result.shapes[0], ElementsAre(1, 2));
}

TEST(Classify, ClassesCountThroughAllDimensionsOfARow) {
  Result result = ResultOf<float>({0, 1, 2, 3, 4, 5}, {1, 2, 3});
  const RequestedOutput asked[] = {{0, 1}};
  ASSERT_TRUE(Classify(SpecOf(DType::kFloat32, {2, 3}), asked, result).ok());
  EXPECT_THAT(Texts(result.outputs[0]), ElementsAre("5.000000:5"));
  EXPECT_THAT(result.shapes[0], ElementsAre(1, 1));
}

TEST(Classify, WithoutABatchDimensionAllIsOneRow) {
  Result result = ResultOf<float>({0, 1, 2, 3}, {2, 2});
  const RequestedOutput asked[] = {{0, 2}};
  ASSERT_TRUE(Classify(SpecOf(DType::kFloat32, {2, 2}, 0), asked, result).ok());
  EXPECT_THAT(Texts(result.outputs[0]), ElementsAre("3.000000:3", "2.000000:2"));
  EXPECT_THAT(result.shapes[0], ElementsAre(2));
}

TEST(Classify, NoMoreClassesThanThereAre) {
  EXPECT_THAT(BestOf<float>(DType::kFloat32, {1, 2}, 10), ElementsAre("2.000000:1", "1.000000:0"));
  EXPECT_THAT(BestOf<float>(DType::kFloat32, {}, 10), ElementsAre());
}

TEST(Classify, EqualsAreInOrderAndNanIsLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(BestOf<float>(DType::kFloat32, {nan, 1, 1, -infinity, 1, infinity}, 6),
              ElementsAre("inf:5", "1.000000:1", "1.000000:2", "1.000000:4", "-inf:3", "nan:0"));
}

TEST(Classify, EveryTypeOfNumbersHasAnOrder) {
  EXPECT_THAT(BestOf<int8_t>(DType::kInt8, {-3, 65}, 2), ElementsAre("65:1", "-3:0"));
  EXPECT_THAT(BestOf<uint8_t>(DType::kUint8, {3, 200}, 2), ElementsAre("200:1", "3:0"));
  EXPECT_THAT(BestOf<uint64_t>(DType::kUint64, {1, std::numeric_limits<uint64_t>::max()}, 1),
              ElementsAre("18446744073709551615:1"));
  EXPECT_THAT(BestOf<int64_t>(DType::kInt64, {std::numeric_limits<int64_t>::min(), 0}, 2),
              ElementsAre("0:1", "-9223372036854775808:0"));
  EXPECT_THAT(BestOf<uint16_t>(DType::kFloat16, {0x3C00, 0xC000, 0x4000}, 3),
              ElementsAre("2.000000:2", "1.000000:0", "-2.000000:1"));
  EXPECT_THAT(BestOf<uint16_t>(DType::kBFloat16, {0x3F80, 0xC000}, 2), ElementsAre("1.000000:0", "-2.000000:1"));
  const std::string longest = BestOf<double>(DType::kFloat64, {-std::numeric_limits<double>::max()}, 1)[0];
  EXPECT_EQ(longest.size(), std::string("-.000000:0").size() + 309);
  EXPECT_GE(MostClassBytes(SpecOf(DType::kFloat64, {1}).outputs[0], 1, 1), static_cast<int64_t>(longest.size()));
}

TEST(Classify, TheBestOfManyAreThoseOfASort) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 1000; ++i) values.push_back(i * 7919 % 1009);
  const std::vector<std::string> all = BestOf<int32_t>(DType::kInt32, values, 1000);
  for (const int64_t classes : {1, 2, 10, 999}) {
    const std::vector<std::string> best = BestOf<int32_t>(DType::kInt32, values, classes);
    EXPECT_EQ(best, std::vector<std::string>(all.begin(), all.begin() + classes));
  }
  for (size_t i = 1; i < all.size(); ++i) ASSERT_GE(std::stoi(all[i - 1]), std::stoi(all[i]));
}

// What a model makes may differ from what it declares.
TEST(Classify, WhatHasNoRowsIsAnError) {
  Result result = ResultOf<float>({0, 1, 2}, {2, 2});
  const RequestedOutput asked[] = {{0, 1}};
  EXPECT_EQ(Classify(SpecOf(DType::kFloat32, {-1}), asked, result).code(), StatusCode::kInternal);
}

TEST(CheckClasses, WhatHasNoOrderIsRefused) {
  for (const DType dtype : {DType::kString, DType::kBool}) {
    const ModelSpec spec = SpecOf(dtype, {3});
    EXPECT_THAT(std::string(CheckClasses(spec, spec.outputs[0], 1, 1).message()),
                HasSubstr("output 'Y' of model 'M' is B"));
  }
}

TEST(CheckClasses, TextsOfAllRowsAreBounded) {
  const ModelSpec open = SpecOf(DType::kFloat32, {-1});
  EXPECT_TRUE(CheckClasses(open, open.outputs[0], kMostClassTexts, 1).ok());
  EXPECT_TRUE(CheckClasses(open, open.outputs[0], kMostClassTexts / 8, 8).ok());
  EXPECT_EQ(std::string(CheckClasses(open, open.outputs[0], kMostClassTexts, 8).message()),
            "parameter 'classification' of output 'Y' of model 'M' asks for 131072 classes of 8 rows; it may be 16384 "
            "at most");
  const ModelSpec closed = SpecOf(DType::kFloat32, {1000});  // of which there are no more
  EXPECT_TRUE(CheckClasses(closed, closed.outputs[0], std::numeric_limits<int64_t>::max(), 8).ok());
}

}  // namespace
}  // namespace swizzle
