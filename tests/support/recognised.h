// What the recogniser of token sequences makes of small models.
#ifndef SWIZZLE_TESTS_SUPPORT_RECOGNISED_H_
#define SWIZZLE_TESTS_SUPPORT_RECOGNISED_H_

#include "gtest/gtest.h"
#include "model_loader/graph/verify.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/passes.h"
#include "model_loader/sequences/recognise.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::testing {

// The canonical graph, verified, or why it is refused.
inline StatusOr<Graph> Recognised(const OnnxBuilder& builder) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, builder.Read());
  EXPECT_TRUE(graph.sequences);
  SWIZZLE_RETURN_IF_ERROR(ResolveConstants(graph).status());
  SWIZZLE_RETURN_IF_ERROR(RemoveNoOps(graph).status());
  SWIZZLE_RETURN_IF_ERROR(RecogniseSequences(graph).status());
  EXPECT_THAT(Verify(graph), IsOk());
  return graph;
}

// The network that is made of it.
inline StatusOr<Network> Lowered(const OnnxBuilder& builder) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, Recognised(builder));
  return Lower(std::move(graph));
}

// Ids [batch, length] looked up in a table [5, 4] as "x".
inline OnnxBuilder Embedded(int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 4});
  builder.Node("Gather", {"words", "ids"}, {"x"});
  return builder;
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_RECOGNISED_H_
