// If, Loop and Scan, and how graphs within nodes read what is around them.
#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;

constexpr auto kTooLarge = StatusCode::kResourceExhausted;

// y = x > limit ? x + c : -x, where c and x stand around the branches.
OnnxBuilder Choice() {
  OnnxBuilder builder;
  builder.Input("x", {}).Floats("limit", {}, {0}).Floats("c", {}, {10});
  builder.Node("Greater", {"x", "limit"}, {"chosen"}).Node("If", {"chosen"}, {"y"}).Output("y");
  OnnxBuilder then, otherwise;
  then.Node("Add", {"x", "c"}, {"sum"}).Output("sum");
  otherwise.Node("Neg", {"x"}, {"negative"}).Output("negative");
  builder.Body("then_branch", {}, then);
  builder.Body("else_branch", {}, otherwise);
  return builder;
}

TEST(If, BranchesReadWhatIsAroundThem) {
  EXPECT_EQ(Values((*Execute(Choice(), {Floats({}, {5})}))[0]), (std::vector<float>{15}));
  EXPECT_EQ(Values((*Execute(Choice(), {Floats({}, {-5})}))[0]), (std::vector<float>{5}));
}

TEST(If, ABranchMayGiveWhatIsAroundIt) {
  OnnxBuilder builder = Choice();
  builder.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->clear_node();
  builder.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_output(0)->set_name("c");
  EXPECT_EQ(Values((*Execute(builder, {Floats({}, {5})}))[0]), (std::vector<float>{10}));
}

TEST(If, NamesTheNodeWithin) {
  OnnxBuilder builder = Choice();
  builder.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(1, "nowhere");
  EXPECT_THAT(Execute(builder, {Floats({}, {5})}), IsError(kInvalid, "If node 'y_node': Add node 'sum_node' reads"));
  OnnxBuilder lacking = Choice();
  lacking.graph().mutable_node(1)->mutable_attribute()->DeleteSubrange(0, 1);
  EXPECT_THAT(Execute(lacking, {Floats({}, {5})}), IsError(kInvalid, "attribute 'then_branch' is not a graph"));
  OnnxBuilder unknown = Choice();
  unknown.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type("Frobnicate");
  EXPECT_THAT(Execute(unknown, {Floats({}, {5})}),
              IsError(StatusCode::kUnimplemented, "operator Frobnicate (opset 17, node 'sum_node') is not supported"));
}

// If within If within If, each of which takes the branch that holds the next.
TEST(If, LiesInItselfAsDeepAsExportersWriteIt) {
  constexpr int kDeep = 24;
  OnnxBuilder inner;
  inner.Node("Add", {"x", "x"}, {"sum"}).Output("sum");
  for (int deep = 0; deep < kDeep; ++deep) {
    OnnxBuilder outer, otherwise;
    const std::string made = Concat("y", deep);
    if (deep == kDeep - 1) outer.Input("x", {}).Floats("limit", {}, {0}).Node("Greater", {"x", "limit"}, {"chosen"});
    otherwise.Node("Neg", {"x"}, {"negative"}).Output("negative");
    outer.Node("If", {"chosen"}, {made}).Output(made);
    outer.Body("then_branch", {}, inner).Body("else_branch", {}, otherwise);
    inner = outer;
  }
  EXPECT_EQ(Values((*Execute(inner, {Floats({}, {5})}))[0]), (std::vector<float>{10}));
  EXPECT_EQ(Values((*Execute(inner, {Floats({}, {-5})}))[0]), (std::vector<float>{5}));
}

// Adds x to what it carries on, turns times, while that is below `limit`; and keeps each sum.
OnnxBuilder Sums(int64_t turns, float limit) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Int64s("turns", {}, {turns}).Floats("limit", {}, {limit}).Floats("zero", {2}, {0, 0});
  builder.Node("Loop", {"turns", "", "zero"}, {"y", "kept"}).Output("y").Output("kept");
  OnnxBuilder body;
  body.Node("Add", {"carried", "x"}, {"sum"}).Node("ReduceMax", {"sum"}, {"most"}, {{"keepdims", int64_t{0}}});
  body.Node("Less", {"most", "limit"}, {"more"}).Node("Identity", {"sum"}, {"keep"});
  body.Output("more").Output("sum").Output("keep");
  builder.Body("body", {"turn", "again", "carried"}, body);
  return builder;
}

TEST(Loop, CarriesOnAndPutsTogether) {
  const auto by_turns = Execute(Sums(3, 100.0f), {Floats({2}, {1, 2})});
  ASSERT_THAT(by_turns, IsOk());
  EXPECT_EQ(Values((*by_turns)[0]), (std::vector<float>{3, 6}));
  EXPECT_EQ((*by_turns)[1].shape, (Shape{3, 2}));
  EXPECT_EQ(Values((*by_turns)[1]), (std::vector<float>{1, 2, 2, 4, 3, 6}));
  const auto by_condition = Execute(Sums(100, 4.0f), {Floats({2}, {1, 2})});
  ASSERT_THAT(by_condition, IsOk());
  EXPECT_EQ(Values((*by_condition)[0]), (std::vector<float>{2, 4}));
  const auto none = Execute(Sums(0, 4.0f), {Floats({2}, {1, 2})});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(Values((*none)[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ((*none)[1].shape[0], 0);
}

TEST(Loop, EndsAtTheLimit) {
  const OnnxBuilder endless = Sums(std::numeric_limits<int64_t>::max(), 1.0f);
  const std::vector<Tensor> x = {Floats({2}, {0, 0})};
  EXPECT_THAT(
      Execute(endless, x, {.max_body_runs = 50}),
      IsError(kTooLarge, "Loop node 'y_node': the graphs within nodes run more often than the limit of 50 times"));
  EXPECT_THAT(Execute(endless, x, {.max_live_bytes = 10'000}), IsError(kTooLarge, "the model's values together"));
}

TEST(Loop, RefusesAGraphOfOtherInputs) {
  OnnxBuilder builder = Sums(3, 100.0f);
  builder.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->add_input()->set_name("more_of_them");
  EXPECT_THAT(Execute(builder, {Floats({2}, {1, 2})}),
              IsError(kInvalid, "Loop node 'y_node': its graph takes 4 inputs, but is given 3"));
  OnnxBuilder short_of = Sums(3, 100.0f);
  short_of.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output()->DeleteSubrange(1, 2);
  EXPECT_THAT(Execute(short_of, {Floats({2}, {1, 2})}), IsError(kInvalid, "gives 1 outputs, but carries on 1"));
}

TEST(Loop, WithinALoop) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Int64s("turns", {}, {4}).Floats("zero", {2}, {0, 0});
  builder.Node("Loop", {"turns", "", "zero"}, {"y"}).Output("y");
  OnnxBuilder outer, inner;
  inner.Node("Add", {"inner_carried", "x"}, {"inner_sum"}).Output("inner_again").Output("inner_sum");
  outer.Node("Loop", {"turns", "", "carried"}, {"sum"}).Output("again").Output("sum");
  outer.Body("body", {"inner_turn", "inner_again", "inner_carried"}, inner);
  builder.Body("body", {"turn", "again", "carried"}, outer);
  const auto outputs = Execute(builder, {Floats({2}, {1, 2})}, {.max_body_runs = 20});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{16, 32}));
  EXPECT_THAT(Execute(builder, {Floats({2}, {1, 2})}, {.max_body_runs = 19}), IsError(kTooLarge, "the limit of 19"));
}

// Running sums of the columns of x, from the last.
OnnxBuilder Columns(const std::map<std::string, Attribute>& attributes) {
  OnnxBuilder builder;
  builder.Input("x", {2, 3}).Floats("zero", {2}, {0, 0});
  builder.Node("Scan", {"zero", "x"}, {"y", "kept"}, attributes).Output("y").Output("kept");
  OnnxBuilder body;
  body.Node("Add", {"state", "step"}, {"sum"}).Node("Identity", {"sum"}, {"keep"}).Output("sum").Output("keep");
  builder.Body("body", {"state", "step"}, body);
  return builder;
}

TEST(Scan, WalksAlongAnyAxisEitherWay) {
  using Ints = std::vector<int64_t>;
  const Tensor x = Floats({2, 3}, {1, 2, 3, 10, 20, 30});
  const auto outputs = Execute(Columns({{"num_scan_inputs", int64_t{1}},
                                        {"scan_input_axes", Ints{1}},
                                        {"scan_input_directions", Ints{1}},
                                        {"scan_output_axes", Ints{-1}},
                                        {"scan_output_directions", Ints{1}}}),
                               {x});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{6, 60}));
  EXPECT_EQ((*outputs)[1].shape, (Shape{2, 3}));
  EXPECT_EQ(Values((*outputs)[1]), (std::vector<float>{6, 5, 3, 60, 50, 30}));
  EXPECT_THAT(Execute(Columns({{"num_scan_inputs", int64_t{3}}}), {x}), IsError(kInvalid, "num_scan_inputs is 3 of 2"));
  EXPECT_THAT(Execute(Columns({}), {x}), IsError(kInvalid, "num_scan_inputs is 0"));
  EXPECT_THAT(Execute(Columns({{"num_scan_inputs", int64_t{1}}, {"scan_input_axes", Ints{2}}}), {x}),
              IsError(kInvalid, "axis"));
  EXPECT_THAT(Execute(Columns({{"num_scan_inputs", int64_t{1}}, {"scan_output_axes", Ints{0, 0}}}), {x}),
              IsError(kInvalid, "scan_output_axes has 2 entries for 1"));
}

}  // namespace
}  // namespace swizzle::interpreter
