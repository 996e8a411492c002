#include "model_loader/calibration/roundings.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::UnorderedElementsAre;

// The names of values that share a scale, a set each.
std::set<std::set<std::string>> RoundedIn(const OnnxBuilder& builder) {
  const auto graph = builder.Read();
  EXPECT_THAT(graph, IsOk());
  const auto is_constant = [&](int value) { return graph->values[static_cast<size_t>(value)].constant.has_value(); };
  const auto is_whole = [&](const Node& node) { return IsWeightedLayer(node, is_constant); };
  const auto is_plane = [&](int value) { return !is_constant(value); };
  const std::vector<int> found = FindRoundings(*graph, is_whole, is_constant, is_plane);
  std::map<int, std::set<std::string>> sets;
  for (size_t value = 0; value < found.size(); ++value) {
    if (found[value] >= 0) sets[found[value]].insert(graph->values[value].name);
  }
  std::set<std::set<std::string>> names;
  for (const auto& [one, members] : sets) names.insert(members);
  return names;
}

OnnxBuilder Images() {
  OnnxBuilder builder;
  return builder.Input("x", {-1, 2, 4, 4}).Counting("w", {2, 2, 1, 1}).Counting("v", {2, 4, 1, 1});
}

TEST(RoundingsTest, WhatLayersMultiplyAndWhatIsAddedBefore) {
  OnnxBuilder builder = Images();
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Conv", {"x", "w"}, {"b"}).Node("Add", {"a", "b"}, {"s"});
  builder.Node("Relu", {"s"}, {"r"}).Node("Conv", {"r", "w"}, {"y"}).Node("Add", {"y", "x"}, {"z"}).Output("z");
  // Not `s`, which its clamp is fused with, nor what leads to the output.
  EXPECT_THAT(RoundedIn(builder), UnorderedElementsAre(std::set<std::string>{"x"}, std::set<std::string>{"a"},
                                                       std::set<std::string>{"b"}, std::set<std::string>{"r"}));
}

TEST(RoundingsTest, WhatIsMovedHasOneScale) {
  OnnxBuilder builder = Images();
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("MaxPool", {"a"}, {"m"}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
  builder.Node("Concat", {"a", "m"}, {"c"}, {{"axis", int64_t{1}}}).Node("Conv", {"c", "v"}, {"y"}).Output("y");
  EXPECT_THAT(RoundedIn(builder),
              UnorderedElementsAre(std::set<std::string>{"x"}, std::set<std::string>{"a", "c", "m"}));
}

TEST(RoundingsTest, APartThatNothingReadsIsLeftOut) {
  OnnxBuilder builder = Images();
  builder.Counting("u", {2, 1, 1, 1}).Node("Conv", {"x", "w"}, {"a"});
  builder.Node("Split", {"a"}, {"", "b"}, {{"axis", int64_t{1}}}).Node("Conv", {"b", "u"}, {"y"}).Output("y");
  EXPECT_THAT(RoundedIn(builder), UnorderedElementsAre(std::set<std::string>{"x"}, std::set<std::string>{"a", "b"}));
}

TEST(RoundingsTest, AFunctionThatIsWrittenOutStaysWhole) {
  OnnxBuilder builder = Images();
  builder.Floats("one", {}, {1}).Node("Conv", {"x", "w"}, {"a"}).Node("Tanh", {"a"}, {"e"});
  builder.Node("Add", {"e", "one"}, {"f"}).Node("Mul", {"a", "f"}, {"g"}).Node("Conv", {"g", "w"}, {"y"}).Output("y");
  EXPECT_THAT(RoundedIn(builder), UnorderedElementsAre(std::set<std::string>{"x"}, std::set<std::string>{"g"}));
}

TEST(RoundingsTest, AGateIsNotRoundedApart) {
  OnnxBuilder builder = Images();
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Sigmoid", {"a"}, {"g"}).Node("Mul", {"a", "g"}, {"s"});
  builder.Node("Conv", {"s", "w"}, {"b"}).Node("Sigmoid", {"b"}, {"f"}).Node("Mul", {"s", "f"}, {"t"});
  builder.Node("Conv", {"t", "w"}, {"y"}).Output("y");
  EXPECT_THAT(RoundedIn(builder),
              UnorderedElementsAre(std::set<std::string>{"x"}, std::set<std::string>{"a"}, std::set<std::string>{"s"},
                                   std::set<std::string>{"b"}, std::set<std::string>{"f"}, std::set<std::string>{"t"}));
}

}  // namespace
}  // namespace swizzle
