// Labels in place of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;

OnnxBuilder Encoder(const std::map<std::string, Attribute>& attributes) {
  OnnxBuilder builder;
  builder.Int64Input("x", {3}).Node("LabelEncoder", {"x"}, {"y"}, attributes).Output("y");
  builder.graph().mutable_node(0)->set_domain("ai.onnx.ml");
  return builder;
}

const std::vector<int64_t> kKeys = {1, 3};
const Tensor kWholes = Tensor::Int64s({3}, std::vector<int64_t>{3, 1, 9});

TEST(LabelEncoderTest, WhatHasNoKeyIsTheDefault) {
  const auto outputs = Execute(
      Encoder({{"keys_int64s", kKeys}, {"values_floats", std::vector<float>{0.25f, 0.75f}}, {"default_float", -2.0f}}),
      {kWholes});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT(Values((*outputs)[0]), ElementsAre(0.75f, 0.25f, -2.0f));
}

TEST(LabelEncoderTest, WordsMayStandForNumbers) {
  const auto outputs = Execute(
      Encoder({{"keys_int64s", kKeys}, {"values_strings", std::vector<std::string>{"one", "three"}}}), {kWholes});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE((*outputs)[0].HasStrings());
}

TEST(LabelEncoderTest, ListsOfTheWrongTypeAreRefused) {
  EXPECT_THAT(Execute(Encoder({{"keys_int64s", kKeys}, {"values_strings", kKeys}}), {kWholes}),
              IsError(StatusCode::kUnimplemented, "0 lists of values"));
  EXPECT_THAT(Execute(Encoder({{"keys_int64s", kKeys}, {"values_int64s", std::vector<int64_t>{1}}}), {kWholes}),
              IsError(StatusCode::kInvalidArgument, "2 keys and 1 values"));
}

}  // namespace
}  // namespace swizzle::interpreter
