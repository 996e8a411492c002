#include "model_loader/regions/run_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace swizzle::regions {
namespace {

using interpreter::Array;

bool IsTensor(const Array& array) { return !array.HasStrings() && !array.IsSequence(); }

// With the elements of constants that shapes may be computed of.
Graph WithLists(const Graph& graph, const std::map<int, Array>& known) {
  Graph made = graph;
  for (const auto& [value, array] : known) {
    if (!IsTensor(array) || array.elements() > kMostSymbolicElements) continue;
    made.values[static_cast<size_t>(value)].constant = TensorOf(array);
  }
  return made;
}

}  // namespace

Tensor TensorOf(const Array& array) {
  const auto bytes = array.AsBytes();
  return {array.dtype, array.shape, std::vector<std::byte>(bytes.begin(), bytes.end())};
}

RunShapes::RunShapes(const Graph& graph, const std::map<int, Array>& known)
    : graph_(WithLists(graph, known)), walk_(graph_) {
  for (const auto& [value, array] : known) {
    if (IsTensor(array)) walk_.Suppose(value, array.dtype, array.shape);
  }
  for (const Node& node : graph_.nodes) {
    const auto is_known = [&](int output) { return output == kNoValue || known.contains(output); };
    if (!std::ranges::all_of(node.outputs, is_known)) walk_.Visit(node);
  }
}

bool RunShapes::AreFixed(int value) const {
  const auto& elements = walk_.Of(value).elements;
  return elements && std::ranges::all_of(elements->values, [](const SymbolicInt& x) { return x.Number().has_value(); });
}

}  // namespace swizzle::regions
