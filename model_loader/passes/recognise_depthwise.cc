#include <cstring>
#include <utility>

#include "model_loader/graph/operators.h"
#include "model_loader/passes/passes.h"

namespace swizzle {
namespace {

// What the weights of one graph may grow to, in elements.
constexpr int64_t kMostElements = int64_t{1} << 27;

// The weight of a convolution in groups as that of one without: zero where input and output are of different groups.
Tensor WithoutGroups(const Tensor& weight, int64_t groups) {
  const int64_t rows = weight.shape[0], cols = weight.elements() / rows;
  Tensor whole{weight.dtype, weight.shape, std::vector<std::byte>(weight.bytes.size() * static_cast<size_t>(groups))};
  whole.shape[1] *= groups;
  const size_t bytes = static_cast<size_t>(cols) * sizeof(float);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t group = row / (rows / groups);
    std::memcpy(whole.bytes.data() + static_cast<size_t>(row * groups + group) * bytes,
                weight.bytes.data() + static_cast<size_t>(row) * bytes, bytes);
  }
  return whole;
}

}  // namespace

StatusOr<int> RecogniseDepthwise(Graph& graph) {
  int count = 0;
  int64_t left = kMostElements;
  for (Node& node : graph.nodes) {
    if (!Is(node, "Conv")) continue;
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t group, IntAttribute(node, "group", 1));
    node.attributes.erase("group");
    if (group == 1) continue;
    ++count;
    const Value& weight = graph.values[node.inputs[1]];
    if (weight.constant->shape[0] == group && weight.constant->shape[1] == 1) {
      node.op = "DepthwiseConv";
      continue;
    }
    const int64_t elements = weight.constant->elements();
    if (elements > left / group) {
      return Unimplemented(Describe(node), " has ", group, " groups: without them the weights of the graph have more ",
                           "than ", kMostElements, " elements");
    }
    left -= elements * group;
    const auto wholes = weight.wholes;
    Tensor whole = WithoutGroups(*weight.constant, group);
    node.inputs[1] = graph.AddConstant(weight.name + ".whole", std::move(whole));
    graph.values[node.inputs[1]].wholes = wholes;
  }
  return count;
}

}  // namespace swizzle
