#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {

StatusOr<int> LowerAffine(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    Node& node = rewriter.node(i);
    if (!Is(node, "Affine")) continue;
    const int x = node.inputs[0], scale = node.inputs[1], shift = node.inputs[2];
    Tensor weight = *graph.values[scale].constant;
    weight.shape = {weight.elements(), 1, 1, 1};
    rewriter.SetInputs(i, {x, graph.AddConstant(node.name + ".weight", std::move(weight)), shift});
    node.op = "DepthwiseConv";
    SetWindow(node, Window{});
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle
