#include "client/cli/input.h"

#include <algorithm>

#include "client/cli/command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

ModelMetadata Model(std::vector<TensorMetadata> inputs) {
  ModelMetadata metadata;
  metadata.name = "m";
  metadata.inputs = std::move(inputs);
  return metadata;
}

// As a server describes a Transformer encoder.
ModelMetadata Encoder() {
  ModelMetadata metadata = Model({{"input_ids", "INT64", {-1, -1}}, {"attention_mask", "INT64", {-1, -1}}});
  metadata.properties = {
      {"swizzle_ids.input_ids", "300"}, {"swizzle_mask.attention_mask", "1"}, {"swizzle_max_length", "64"}};
  return metadata;
}

absl::StatusOr<std::vector<Tensor>> Draw(const ModelMetadata& metadata, const PlanOptions& options) {
  const auto plans = PlanInputs(metadata, options);
  return plans.ok() ? DrawInputs(*plans, 1) : plans.status();
}

void ExpectRefused(const ModelMetadata& metadata, const PlanOptions& options, const char* why) {
  const absl::Status status = Draw(metadata, options).status();
  EXPECT_EQ(ExitCodeOf(status), kExitUsage) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST(DrawInputsTest, FollowsMetadata) {
  const ModelMetadata metadata = Model({{"a", "FP32", {-1, 4}}, {"b", "INT64", {-1}}, {"c", "BF16", {-1, 2}}});
  const auto inputs = Draw(metadata, {.batch = 8});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 3u);
  for (const Tensor& input : *inputs) {
    EXPECT_TRUE(Check(input).ok()) << Check(input);
    EXPECT_EQ(input.shape[0], 8);
  }
  EXPECT_THAT((*inputs)[0].Values<float>(), Each(AllOf(Ge(0.0f), Lt(1.0f))));
  EXPECT_THAT((*inputs)[1].Values<int64_t>(), Each(AllOf(Ge(0), Lt(2))));
  EXPECT_EQ((*Draw(metadata, {.batch = 8}))[0].data, (*inputs)[0].data);
}

TEST(DrawInputsTest, IdsAreOfTheVocabularyAndMasksLeaveNothingOut) {
  const auto inputs = Draw(Encoder(), {.batch = 2});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(2, 64));  // no longer than the model takes
  const auto ids = (*inputs)[0].Values<int64_t>();
  EXPECT_THAT(ids, Each(AllOf(Ge(0), Lt(300))));
  EXPECT_GT(*std::ranges::max_element(ids), 200);
  EXPECT_THAT((*inputs)[1].Values<int64_t>(), Each(1));
  EXPECT_THAT((*Draw(Encoder(), {.tokens = 16}))[1].shape, ElementsAre(1, 16));
  EXPECT_THAT((*Draw(Encoder(), {.shapes = {{"attention_mask", {5}}}}))[0].shape, ElementsAre(1, 5));
}

TEST(DrawInputsTest, SmallTypesHoldFewerIds) {
  ModelMetadata metadata = Model({{"ids", "INT8", {-1, 2000}}});
  metadata.properties = {{"swizzle_ids.ids", "30000"}};
  EXPECT_THAT((*Draw(metadata, {}))[0].Values<int8_t>(), Each(Ge(0)));
}

TEST(DrawInputsTest, MasksOfOtherServersAreKnownByTheirNames) {
  const auto inputs = Draw(Model({{"Attention_Mask", "INT32", {-1, 50}}, {"mask", "FP32", {-1, 50}}}), {});
  EXPECT_THAT((*inputs)[0].Values<int32_t>(), Each(1));
  EXPECT_THAT((*inputs)[1].Values<float>(), ::testing::Contains(Lt(0.9f)));
}

TEST(DrawInputsTest, TakesShapesWithAndWithoutTheBatch) {
  const ModelMetadata metadata = Model({{"a", "FP32", {-1, 3, -1}}});
  EXPECT_THAT((*Draw(metadata, {.batch = 2, .shapes = {{"a", {3, 7}}}}))[0].shape, ElementsAre(2, 3, 7));
  EXPECT_THAT((*Draw(metadata, {.shapes = {{"a", {4, 3, 7}}}}))[0].shape, ElementsAre(4, 3, 7));
  EXPECT_THAT((*Draw(metadata, {.free = 9}))[0].shape, ElementsAre(1, 3, 9));
  ExpectRefused(metadata, {.batch = 2, .shapes = {{"a", {4, 3, 7}}}}, "of which --shape says 4 rows, and --batch 2");
  ExpectRefused(metadata, {.shapes = {{"a", {4, 7}}}}, "whose dimension 1 cannot be 4");
  ExpectRefused(metadata, {.shapes = {{"a", {7}}}}, "does not fit");
  ExpectRefused(metadata, {.shapes = {{"b", {7}}}}, "model 'm' has no such input");
}

TEST(DrawInputsTest, RefusesWhatOnlyTheCallerKnows) {
  ExpectRefused(Model({{"a", "FP32", {-1, -1}}}), {}, "a dimension is free; give --shape a:D1, or --input a=FILE.npy");
  ExpectRefused(Model({{"a", "BYTES", {-1}}}), {}, "can't draw input 'a' of datatype BYTES");
  ExpectRefused(Model({{"a", "FP32", {4}}}), {.batch = 2}, "--batch must be 1");
  ExpectRefused(Model({{"a", "FP32", {-1, int64_t{1} << 40}}}), {.batch = 2}, "too large to draw");
  EXPECT_TRUE(Draw(Model({{"a", "FP32", {4}}}), {}).ok());
}

TEST(DrawInputsTest, TextsHaveAsManyWordsAsTheModelTakesTokens) {
  ModelMetadata metadata = Model({{"text", "BYTES", {-1, 1}}});
  metadata.properties = {{"swizzle_text", "embedding"}, {"swizzle_max_tokens", "12"}, {"swizzle_max_length", "512"}};
  const auto inputs = Draw(metadata, {.batch = 3});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(3, 1));
  EXPECT_TRUE(Check((*inputs)[0]).ok());
  EXPECT_EQ(std::ranges::count((*inputs)[0].data, ' '), 3 * 9);
}

TEST(DrawInputsTest, OfTextsToClassifyARowHasOne) {
  ModelMetadata metadata = Model({{"text", "BYTES", {-1, -1}}});
  metadata.properties = {{"swizzle_text", "classification"}, {"swizzle_max_tokens", "12"}};
  const auto inputs = Draw(metadata, {.batch = 3});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_THAT((*inputs)[0].shape, ElementsAre(3, 1));
  EXPECT_TRUE(Check((*inputs)[0]).ok());
}

TEST(DrawInputsTest, StringsAreDrawnWhereTheyAreAllowed) {
  const auto plans = PlanInputs(Model({{"a", "BYTES", {-1, 2}}}), {}, /*strings=*/true);
  ASSERT_TRUE(plans.ok()) << plans.status();
  const auto inputs = DrawInputs(*plans, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_TRUE(Check((*inputs)[0]).ok());
  EXPECT_EQ((*inputs)[0].data.size(), 16u);
}

TEST(ParseShapesTest, TakesNamesAndDimensions) {
  const auto shapes = ParseShapes({"a:1,2,3", "ids:0:7"});
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(shapes->at("a"), ElementsAre(1, 2, 3));
  EXPECT_THAT(shapes->at("ids:0"), ElementsAre(7));
  for (const char* wrong : {"a", "a:", ":3", "a:0", "a:-1", "a:1,", "a:1,x", "a:99999999999999999999"}) {
    EXPECT_EQ(ExitCodeOf(ParseShapes({wrong}).status()), kExitUsage) << wrong;
  }
  EXPECT_EQ(ExitCodeOf(ParseShapes({"a:1", "a:2"}).status()), kExitUsage);
}

}  // namespace
}  // namespace swizzle::client
