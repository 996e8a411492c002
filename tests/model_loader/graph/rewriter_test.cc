#include "model_loader/graph/rewriter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/graph/verify.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;

// a = relu(x), b = relu(a), c = a + b, d = relu(x) for nobody; outputs b and c.
Graph Diamond() {
  Graph graph;
  for (const char* name : {"x", "a", "b", "c", "d"}) {
    graph.AddValue({name, DType::kFloat32, Shape{kFreeBatch, 2}, std::nullopt});
  }
  graph.inputs = {0};
  graph.nodes = {{"Relu", "", "A", {0}, {1}, {}},
                 {"Relu", "", "B", {1}, {2}, {}},
                 {"Add", "", "C", {1, 2}, {3}, {}},
                 {"Relu", "", "D", {0}, {4}, {}}};
  graph.outputs = {{"b", 2}, {"c", 3}};
  return graph;
}

TEST(RewriterTest, KnowsProducersAndReaders) {
  Graph graph = Diamond();
  Rewriter rewriter(graph);
  EXPECT_EQ(rewriter.Producer(0), -1);
  EXPECT_EQ(rewriter.Producer(2), 1);
  EXPECT_EQ(rewriter.Producer(kNoValue), -1);
  EXPECT_THAT(rewriter.Readers(1), ElementsAre(1, 2));
  EXPECT_EQ(rewriter.SoleReader(1), -1) << "read by two nodes";
  EXPECT_EQ(rewriter.SoleReader(2), -1) << "a graph output too";
  EXPECT_EQ(rewriter.SoleReader(4), -1) << "read by nobody";
}

TEST(RewriterTest, CountsARepeatedReaderTwice) {
  Graph graph = Diamond();
  graph.outputs = {{"c", 3}};
  graph.nodes[2].inputs = {2, 2};
  Rewriter rewriter(graph);
  EXPECT_EQ(rewriter.SoleReader(2), -1);
  EXPECT_EQ(rewriter.SoleReader(1), 1);
}

TEST(RewriterTest, FinishDropsDeadNodesAndValues) {
  Graph graph = Diamond();
  Rewriter(graph).Finish();
  EXPECT_THAT(Verify(graph), IsOk());
  EXPECT_EQ(Print(graph), R"(input %x: FP32[N,2]
%a = Relu(%x) "A" -> FP32[N,2]
%b = Relu(%a) "B" -> FP32[N,2]
%c = Add(%a,%b) "C" -> FP32[N,2]
output "b" = %b
output "c" = %c
)");
}

TEST(RewriterTest, ReplacesReadsEverywhere) {
  Graph graph = Diamond();
  Rewriter rewriter(graph);
  rewriter.ReplaceReads(2, 0);
  rewriter.Erase(1);
  rewriter.Finish();
  EXPECT_THAT(Verify(graph), IsOk());
  EXPECT_EQ(Print(graph), R"(input %x: FP32[N,2]
%a = Relu(%x) "A" -> FP32[N,2]
%c = Add(%a,%x) "C" -> FP32[N,2]
output "b" = %x
output "c" = %c
)");
}

TEST(RewriterTest, TakesOutputOfALaterNode) {
  Graph graph = Diamond();
  graph.nodes[2].inputs = {2, 2};
  Rewriter rewriter(graph);
  rewriter.TakeOutput(0, 1);
  EXPECT_EQ(rewriter.Producer(2), 0);
  EXPECT_TRUE(rewriter.IsErased(1));
  rewriter.Finish();
  EXPECT_THAT(Verify(graph), IsOk());
  EXPECT_EQ(Print(graph), R"(input %x: FP32[N,2]
%b = Relu(%x) "A" -> FP32[N,2]
%c = Add(%b,%b) "C" -> FP32[N,2]
output "b" = %b
output "c" = %c
)");
}

TEST(RewriterTest, KnowsConstantsAddedOnTheWay) {
  Graph graph = Diamond();
  Rewriter rewriter(graph);
  const int constant = graph.AddConstant("k", Tensor::Floats({2}, std::vector<float>{1, 2}));
  rewriter.SetInputs(2, {1, constant});
  EXPECT_EQ(rewriter.SoleReader(constant), 2);
  EXPECT_EQ(rewriter.SoleReader(1), -1);
  rewriter.Finish();
  EXPECT_THAT(Verify(graph), IsOk());
}

}  // namespace
}  // namespace swizzle
