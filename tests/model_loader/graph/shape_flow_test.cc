#include "model_loader/graph/shape_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"

namespace swizzle {
namespace {

using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph GraphOf(const OnnxBuilder& builder) {
  return (*interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes())))->graph();
}
bool Follow(const OnnxBuilder& builder) { return ShapesFollowShapes(GraphOf(builder)); }

TEST(ShapesFollowShapes, UnlessTheyAreOfElements) {
  OnnxBuilder by_shape;
  by_shape.Input("x", {-1, 4}).Node("Shape", {"x"}, {"s"}).Node("Expand", {"x", "s"}, {"y"}).Output("y");
  EXPECT_TRUE(Follow(by_shape));
  OnnxBuilder by_element;
  by_element.Input("x", {-1, 4}).Node("NonZero", {"x"}, {"y"}).Output("y");
  EXPECT_FALSE(Follow(by_element));
  OnnxBuilder unique;
  unique.Input("x", {-1}).Node("Unique", {"x"}, {"y"}).Output("y");
  EXPECT_FALSE(Follow(unique));
}

// y = body(x), run as often as `times` says.
OnnxBuilder Repeated(const std::string& times, const std::string& op) {
  OnnxBuilder builder, body;
  builder.Input("x", {-1, 4}).Int64s("constant", {}, {3}).Int64s("axes", {1}, {1});
  builder.Node("Shape", {"x"}, {"shape"}).Node("ReduceProd", {"shape"}, {"by_shape"}, {{"keepdims", int64_t{0}}});
  builder.Node("ReduceMax", {"x"}, {"largest"}, {{"keepdims", int64_t{0}}});
  builder.Node("Cast", {"largest"}, {"by_element"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  builder.Node("Loop", {times, "", "x"}, {"y"}).Output("y");
  body.Node("Identity", {"again"}, {"goes_on"}).Output("goes_on").Node(op, {"carried"}, {"next"}).Output("next");
  builder.Body("body", {"turn", "again", "carried"}, body);
  return builder;
}

TEST(ShapesFollowShapes, WithinLoopsThatGoByShapes) {
  EXPECT_TRUE(Follow(Repeated("constant", "Neg")));
  EXPECT_TRUE(Follow(Repeated("by_shape", "Neg")));
  EXPECT_FALSE(Follow(Repeated("by_element", "Neg")));
  EXPECT_FALSE(Follow(Repeated("constant", "NonZero")));
}

TEST(ShapesFollowShapes, NotWhereAnElementChoosesABranch) {
  OnnxBuilder builder, all, half;
  builder.Input("x", {4}).Floats("limit", {}, {0}).Node("ReduceMax", {"x"}, {"m"}, {{"keepdims", int64_t{0}}});
  builder.Node("Greater", {"m", "limit"}, {"chosen"}).Node("If", {"chosen"}, {"y"}).Output("y");
  all.Node("Neg", {"x"}, {"same"}).Output("same");
  half.Node("Split", {"x"}, {"first", "second"}, {{"axis", int64_t{0}}}).Output("first");
  builder.Body("then_branch", {}, all).Body("else_branch", {}, half);
  EXPECT_FALSE(Follow(builder));
}

TEST(SteadyNodes, ReadShapesAndConstants) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Int64s("one", {}, {1}).Node("Shape", {"x"}, {"shape"});
  builder.Node("Gather", {"shape", "one"}, {"width"}).Node("Cast", {"width"}, {"real"}, {{"to", int64_t{1}}});
  builder.Node("Sqrt", {"real"}, {"root"}).Node("Div", {"x", "root"}, {"y"}).Node("Neg", {"y"}, {"z"}).Output("z");
  EXPECT_THAT(SteadyNodes(GraphOf(builder)), ElementsAre(0, 1, 2, 3));
  builder.Node("NonZero", {"z"}, {"places"}).Node("Shape", {"places"}, {"count"}).Output("count");
  EXPECT_THAT(SteadyNodes(GraphOf(builder)), IsEmpty());
}

// y = op(x0, x1, ...), of inputs of the graph.
Graph GraphOf(const OnnxOperator& row) {
  Graph graph;
  const auto add = [&](const std::string& name) {
    Value value;
    value.name = name;
    return graph.AddValue(std::move(value));
  };
  Node node{std::string(row.spec.op), std::string(row.spec.domain), "node", {}, {}, {}};
  for (int i = 0; i < std::min(row.spec.max_inputs, 40); ++i) {
    graph.inputs.push_back(add(std::to_string(i)));
    node.inputs.push_back(graph.inputs.back());
  }
  node.outputs = {add("y")};
  graph.outputs.push_back({"y", node.outputs[0]});
  graph.nodes.push_back(std::move(node));
  return graph;
}

// The compiler asks for it: a row without it has no value for its last column.
static_assert(!std::is_default_constructible_v<OperatorFacts>,
              "operators would be static unless somebody thought of it");

TEST(ShapesFollowShapes, AsTheRowOfEachOperatorSays) {
  for (const OnnxOperator& row : OnnxOperators()) {
    const Graph graph = GraphOf(row);
    bool decides = false;
    for (size_t i = 0; i < graph.inputs.size(); ++i) decides |= row.facts.DecidesSizes(i);
    EXPECT_EQ(ShapesFollowShapes(graph), !decides) << row.spec.op;
    EXPECT_EQ(GoByElements(graph).back(), row.facts.DecidesResults() && !graph.inputs.empty()) << row.spec.op;
    const bool any = row.facts.DecidesSizes(31);
    for (int i = row.spec.max_inputs; i < 31 && !any; ++i) {
      EXPECT_FALSE(row.facts.DecidesSizes(static_cast<size_t>(i))) << row.spec.op << " has no input " << i;
    }
  }
}

TEST(ShapesFollowShapes, NotThroughOperatorsWhoseResultsAreAsLargeAsElementsSay) {
  for (const char* const op : {"Compress", "ConstantOfShape", "Expand",    "If",      "Loop",      "NonMaxSuppression",
                               "NonZero",  "OneHot",          "Pad",       "Range",   "ReduceSum", "Reshape",
                               "Resize",   "SequenceAt",      "Slice",     "Split",   "Squeeze",   "Tile",
                               "TopK",     "Unique",          "Unsqueeze", "Upsample"}) {
    EXPECT_FALSE(ShapesFollowShapes(GraphOf(*FindOnnxOperator("", op)))) << op;
  }
}

TEST(ShapesFollowShapes, NotThroughOperatorsThatNobodyKnows) {
  for (const char* const domain : {"", "com.microsoft", "com.example"}) {
    Graph graph = GraphOf(*FindOnnxOperator("", "Neg"));
    EXPECT_TRUE(ShapesFollowShapes(graph));
    graph.nodes[0].op = "Unheard";
    graph.nodes[0].domain = domain;
    EXPECT_FALSE(ShapesFollowShapes(graph));
    EXPECT_FALSE(ReadsShapesAlone(graph.nodes[0]));
    graph.nodes[0].inputs.clear();
    EXPECT_THAT(SteadyNodes(graph), IsEmpty()) << "of no inputs, either";
    EXPECT_TRUE(GoByElements(graph).back());
  }
}

TEST(GoByElements, ButNotWhatIsMadeOfShapesAlone) {
  for (const char* const op : {"Shape", "Size", "EyeLike"}) {
    const Graph graph = GraphOf(*FindOnnxOperator("", op));
    EXPECT_TRUE(ReadsShapesAlone(graph.nodes[0])) << op;
    EXPECT_THAT(GoByElements(graph), ElementsAre(true, false)) << op;
    EXPECT_THAT(SteadyNodes(graph), ElementsAre(0)) << op;
  }
}

}  // namespace
}  // namespace swizzle
