#include "model_loader/graph/operators.h"
#include "model_loader/passes/passes.h"

namespace swizzle {

StatusOr<int> RecogniseDepthwise(Graph& graph) {
  int count = 0;
  for (Node& node : graph.nodes) {
    if (!Is(node, "Conv")) continue;
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t group, IntAttribute(node, "group", 1));
    node.attributes.erase("group");
    if (group == 1) continue;
    SWIZZLE_CHECK(graph.ShapeOf(node.inputs[1])[0] == group);  // the pass before lets no other groups through
    node.op = "DepthwiseConv";
    ++count;
  }
  return count;
}

}  // namespace swizzle
