// Vectors divided by their lengths, as embedding models end, and single tokens of sequences of one length.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "model_loader/graph/print.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/recognised.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::Embedded;
using ::testing::HasSubstr;
using testing::IsError;
using testing::IsOk;
using testing::kUnsupported;
using testing::OnnxBuilder;
using testing::Recognised;
using Ints = std::vector<int64_t>;

// "x" and its tokens' lengths.
OnnxBuilder Lengths() {
  OnnxBuilder builder = Embedded();
  builder.Node("ReduceL2", {"x"}, {"length"}, {{"axes", Ints{-1}}});
  return builder;
}

OnnxBuilder Bounded(const std::string& op, float least) {
  OnnxBuilder builder = Lengths();
  builder.Floats("least", {}, {least}).Node(op, {"length", "least"}, {"bounded"}).Node("Shape", {"x"}, {"s"});
  builder.Node("Expand", {"bounded", "s"}, {"all"}).Node("Div", {"x", "all"}, {"y"}).Output("y");
  return builder;
}

// Four channels: what a root mean square makes 1 has the length 2.
void ExpectHalved(const OnnxBuilder& builder, const std::string& epsilon) {
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph, IsOk());
  const std::string text = Print(*graph);
  EXPECT_THAT(text, HasSubstr("= swizzle.LayerNorm(%x_node,")) << text;
  EXPECT_THAT(text, HasSubstr("{centred=0,epsilon=" + epsilon + "}"));
  EXPECT_THAT(text, HasSubstr(".scale: FP32[4] = {0.5,0.5,0.5,0.5}"));
}

TEST(UnitLengthTest, EachSpellingIsANormByTheRootMeanSquare) {
  OnnxBuilder divided = Lengths();
  ExpectHalved(divided.Node("Div", {"x", "length"}, {"y"}).Output("y"), "0");
  ExpectHalved(Bounded("Clip", 1e-12f), "2.5e-25");
  ExpectHalved(Bounded("Max", 1e-12f), "2.5e-25");
  OnnxBuilder normalised = Embedded();
  ExpectHalved(normalised.Node("LpNormalization", {"x"}, {"y"}).Output("y"), "1.1754944e-38");
}

TEST(UnitLengthTest, WhatIsDividedIsScaledAfterwards) {
  OnnxBuilder builder = Lengths();
  builder.Node("Div", {"x", "length"}, {"n"}).Floats("scale", {4}, {2, 4, 6, 8});
  const auto graph = Recognised(builder.Node("Mul", {"n", "scale"}, {"y"}).Output("y"));
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(Print(*graph), HasSubstr(".scale: FP32[4] = {1,2,3,4}"));
}

TEST(UnitLengthTest, RefusesWhatIsNoUnitLength) {
  EXPECT_THAT(Recognised(Bounded("Clip", 0.1f)), IsError(kUnsupported, "bounded_node"));
  OnnxBuilder tokens = Embedded();
  tokens.Node("ReduceL2", {"x"}, {"y"}, {{"axes", Ints{1}}}).Output("y");
  EXPECT_THAT(Recognised(tokens), IsError(kUnsupported, "it is not over the channels"));
  EXPECT_THAT(Recognised(Lengths().Output("length")), IsError(kUnsupported, "is read by something else"));
  OnnxBuilder sums = Embedded();
  sums.Node("LpNormalization", {"x"}, {"y"}, {{"p", int64_t{1}}}).Output("y");
  EXPECT_THAT(Recognised(sums), IsError(kUnsupported, "it does not divide by the length"));
}

TEST(UnitLengthTest, RefusesBoundsThatAreNone) {
  EXPECT_THAT(Recognised(Bounded("Clip", std::numeric_limits<float>::quiet_NaN())), IsError(kUnsupported, "bounded"));
  OnnxBuilder larger = Lengths();
  larger.Floats("least", {3, 1, 1, 1}, {0, 0, 0}).Node("Max", {"length", "least"}, {"bounded"});
  EXPECT_THAT(Recognised(larger.Node("Div", {"x", "bounded"}, {"y"}).Output("y")), IsError(kUnsupported, "bounded"));
  OnnxBuilder third = Lengths();
  third.Node("Clip", {"x", "", "length"}, {"y"}).Output("y");
  EXPECT_THAT(Recognised(third), IsError(kUnsupported, "y_node"));
  OnnxBuilder whole = Lengths();
  whole.Node("Cast", {"length"}, {"w"}, {{"to", int64_t{6}}}).Node("Cast", {"w"}, {"real"}, {{"to", int64_t{1}}});
  EXPECT_THAT(Recognised(whole.Node("Div", {"x", "real"}, {"y"}).Output("y")), IsError(kUnsupported, "w_node"));
}

TEST(UnitLengthTest, AnyTokenOfSequencesOfOneLengthIsTaken) {
  const auto taken = [](int64_t length, int64_t token) {
    OnnxBuilder builder;
    builder.Int64Input("ids", {-1, length}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
    builder.Int64s("token", {}, {token}).Node("Gather", {"x", "token"}, {"y"}, {{"axis", int64_t{1}}});
    return Recognised(builder.Output("y"));
  };
  for (const auto& [token, expected] :
       {std::pair{1, "{token=1}"}, {-3, "{token=3}"}, {-1, "{token=-1}"}, {5, "{token=-1}"}}) {
    const auto graph = taken(6, token);
    ASSERT_THAT(graph, IsOk());
    EXPECT_THAT(Print(*graph), HasSubstr(expected));
  }
  EXPECT_THAT(taken(6, 6), IsError(kUnsupported, "its index 6 is out of range"));
  EXPECT_FALSE(taken(-1, 1).ok()) << "a sequence may have one token alone";
  OnnxBuilder part;
  part.Int64Input("ids", {-1, 6}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  part.Int64s("begin", {1}, {2}).Int64s("end", {1}, {3}).Int64s("axis", {1}, {1});
  const auto graph = Recognised(part.Node("Slice", {"x", "begin", "end", "axis"}, {"y"}).Output("y"));
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(Print(*graph), HasSubstr("{token=2}"));
}

}  // namespace
}  // namespace swizzle
