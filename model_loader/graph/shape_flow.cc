#include "model_loader/graph/shape_flow.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "model_loader/graph/operator_table.h"

namespace swizzle {
namespace {

// What is followed through a graph: by value, whether its elements depend on an input's.
using Flags = std::vector<bool>;

bool AnyOf(const Flags& flags, const std::vector<int>& values) {
  return std::ranges::any_of(values, [&](int v) { return v != kNoValue && flags[static_cast<size_t>(v)]; });
}

// Results of a node whose operator nobody knows depend on whatever it is given, and on more than that.
bool ResultsDepend(const Node& node, const Flags& elements) {
  const OnnxOperator* const row = FindOnnxOperator(node.domain, node.op);
  return row == nullptr || (row->facts.DecidesResults() && AnyOf(elements, node.inputs));
}

void MarkResults(const Node& node, Flags& elements) {
  if (!ResultsDepend(node, elements)) return;
  for (const int output : node.outputs) {
    if (output != kNoValue) elements[static_cast<size_t>(output)] = true;
  }
}

bool SizesDepend(const Node& node, const Flags& elements) {
  const OnnxOperator* const row = FindOnnxOperator(node.domain, node.op);
  if (row == nullptr) return true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int input = node.inputs[i];
    if (input != kNoValue && elements[static_cast<size_t>(input)] && row->facts.DecidesSizes(i)) return true;
  }
  return false;
}

std::optional<Flags> WithElements(const Graph& graph, Flags elements);

// Whether shapes within the node's graphs go by shapes alone, and so does how often a loop runs: it is held to end by
// what its first condition was made of. What a loop carries has elements of whatever it reads.
bool BodiesFollow(const Node& node, const Flags& elements) {
  for (const auto& [name, attribute] : node.attributes) {
    const auto* const held = std::get_if<std::shared_ptr<const Body>>(&attribute);
    if (held == nullptr) continue;
    const Body& body = **held;
    const bool loops = node.op == "Loop";
    const size_t given = body.graph.inputs.size() - body.captured.size();
    Flags within(body.graph.values.size());
    for (size_t i = loops ? 2 : 0; i < given; ++i) within[static_cast<size_t>(body.graph.inputs[i])] = true;
    for (size_t i = 0; i < body.captured.size(); ++i) {
      const auto outer = static_cast<size_t>(node.inputs[body.captured[i]]);
      if (elements[outer]) within[static_cast<size_t>(body.graph.inputs[given + i])] = true;
    }
    const auto found = WithElements(body.graph, std::move(within));
    if (!found || (loops && (*found)[static_cast<size_t>(body.graph.outputs.front().value)])) return false;
  }
  return true;
}

// With all that depends on these; nothing where a shape does.
std::optional<Flags> WithElements(const Graph& graph, Flags elements) {
  for (const Node& node : graph.nodes) {
    if (SizesDepend(node, elements) || !BodiesFollow(node, elements)) return std::nullopt;
    MarkResults(node, elements);
  }
  return elements;
}

Flags InputsOf(const Graph& graph) {
  Flags inputs(graph.values.size());
  for (const int input : graph.inputs) inputs[static_cast<size_t>(input)] = true;
  return inputs;
}

}  // namespace

bool ReadsShapesAlone(const Node& node) { return !FactsOf(node.domain, node.op).DecidesResults(); }

std::vector<bool> GoByElements(const Graph& graph) {
  Flags elements = InputsOf(graph);
  for (const Node& node : graph.nodes) MarkResults(node, elements);
  return elements;
}

bool ShapesFollowShapes(const Graph& graph) { return WithElements(graph, InputsOf(graph)).has_value(); }

std::vector<int> SteadyNodes(const Graph& graph) {
  std::vector<int> steady;
  const std::optional<Flags> elements = WithElements(graph, InputsOf(graph));
  for (size_t n = 0; elements && n < graph.nodes.size(); ++n) {
    if (!AnyOf(*elements, graph.nodes[n].outputs)) steady.push_back(static_cast<int>(n));
  }
  return steady;
}

}  // namespace swizzle
