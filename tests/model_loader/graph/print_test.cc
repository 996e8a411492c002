// The text form of graphs, there and back.
#include "model_loader/graph/print.h"

#include "gtest/gtest.h"
#include "tests/support/graph_text.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::ParseGraph;

constexpr char kText[] = R"(input %x: FP32[N,3,8,8]
input %ids: INT64[?]
constant %w: FP32[16,3,3,3]
constant %axes: INT64[2] = {2,-1}
constant %none: FP32[0] = {}
%c = swizzle.Conv(%x,%w,_,%x) {group=1,high=0.16666667,low=-inf,strides=[2,2]} "stem" -> FP32[N,16,4,4]
%p,_ = MaxPool(%c) {auto_pad="SAME_UPPER"} "pool" -> FP32[?],_
%k = Constant() {value=INT64[2] = {3,4}} "k" -> INT64[?]
%g = com.microsoft.Gelu(%p) "g" -> FP32[?]
output "logits" = %g
output "k" = %k
)";

TEST(PrintTest, TextBecomesAGraphAndTextAgain) {
  const auto graph = ParseGraph(kText, 17);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(Print(*graph), kText);
  EXPECT_EQ(graph->opset, 17);
  EXPECT_EQ(graph->nodes[0].domain, "swizzle");
  EXPECT_EQ(graph->nodes[0].attributes.at("high"), Attribute(1.0f / 6));
  EXPECT_EQ(graph->nodes[0].attributes.at("group"), Attribute(int64_t{1}));
  EXPECT_EQ(graph->nodes[0].inputs[2], kNoValue);
  EXPECT_EQ(graph->nodes[3].domain, "com.microsoft");
  EXPECT_EQ(graph->values[graph->nodes[0].inputs[1]].constant->floats()[2], 3.0f) << "counts up from 1";
}

TEST(PrintTest, LinesThatAreNoneAreShown) {
  for (const char* line : {"%y = Relu(%x) -> FP32[?]", "%y = Relu(%z) \"y\" -> FP32[?]", "input %x FP32[2]",
                           "constant %x: FP99[2]", "output y = %x", "%y = Relu(%x) {a=1 \"y\" -> FP32[?]"}) {
    EXPECT_THAT(ParseGraph(Concat("input %x: FP32[N]\n", line), 17).status(), IsError(StatusCode::kInvalidArgument, ""))
        << line;
  }
}

}  // namespace
}  // namespace swizzle
