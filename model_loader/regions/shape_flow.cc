#include "model_loader/regions/shape_flow.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

namespace swizzle::regions {
namespace {

// Inputs whose elements say how large an operator's results are; in bits.
struct ShapeInputs {
  std::string_view op;
  uint32_t inputs;
};
constexpr ShapeInputs kShapeInputs[] = {
    {"AffineGrid", 2},
    {"BlackmanWindow", 1},
    {"Col2Im", 6},
    {"Compress", 2},
    {"ConstantOfShape", 1},
    {"DFT", 2 | 4},
    {"Expand", 2},
    {"HammingWindow", 1},
    {"HannWindow", 1},
    {"If", 1},
    {"Loop", 1 | 2},
    {"MaxUnpool", 4},
    {"MelWeightMatrix", 3},
    {"NonMaxSuppression", 31},
    {"NonZero", 1},
    {"OneHot", 2},
    {"Pad", 2 | 8},
    {"Range", 7},
    {"Reshape", 2},
    {"Resize", 14},
    {"STFT", 2 | 8},
    {"SequenceAt", 2},
    {"SequenceErase", 2},
    {"SequenceInsert", 4},
    {"Slice", 30},
    {"Split", 2},
    {"SplitToSequence", 2},
    {"Squeeze", 2},
    {"StringNormalizer", 1},
    {"Tile", 6},
    {"TopK", 2},
    {"Unique", 1},
    {"Unsqueeze", 2},
    {"Upsample", 2},
};

uint32_t ShapeInputsOf(const Node& node) {
  if (node.op.starts_with("Reduce")) return 2;
  const auto found = std::ranges::find(kShapeInputs, node.op, &ShapeInputs::op);
  return found == std::end(kShapeInputs) ? 0 : found->inputs;
}

using Values = std::set<int>;

std::optional<Values> WithElements(const Graph& graph, Values elements);

// Whether shapes within the node's graphs go by shapes alone, and so does how often a loop runs: it is held to end by
// what its first condition was made of. What a loop carries has elements of whatever it reads.
bool BodiesFollow(const Node& node, const Values& elements) {
  for (const auto& [name, attribute] : node.attributes) {
    const auto* const held = std::get_if<std::shared_ptr<const Body>>(&attribute);
    if (held == nullptr) continue;
    const Body& body = **held;
    const bool loops = node.op == "Loop";
    const size_t given = body.graph.inputs.size() - body.captured.size();
    Values within;
    for (size_t i = loops ? 2 : 0; i < given; ++i) within.insert(body.graph.inputs[i]);
    for (size_t i = 0; i < body.captured.size(); ++i) {
      if (elements.contains(node.inputs[body.captured[i]])) within.insert(body.graph.inputs[given + i]);
    }
    const auto found = WithElements(body.graph, std::move(within));
    if (!found || (loops && found->contains(body.graph.outputs.front().value))) return false;
  }
  return true;
}

// Values that depend on the elements of these; nothing where a shape does.
std::optional<Values> WithElements(const Graph& graph, Values elements) {
  for (const Node& node : graph.nodes) {
    const uint32_t shape_inputs = ShapeInputsOf(node);
    bool depends = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!elements.contains(node.inputs[i])) continue;
      if (i < 32 && (shape_inputs >> i & 1) != 0) return std::nullopt;
      depends = true;
    }
    if (!BodiesFollow(node, elements)) return std::nullopt;
    if (depends && node.op != "Shape" && node.op != "Size") elements.insert(node.outputs.begin(), node.outputs.end());
    elements.erase(kNoValue);
  }
  return elements;
}

std::optional<Values> WithElementsOfInputs(const Graph& graph) {
  return WithElements(graph, Values(graph.inputs.begin(), graph.inputs.end()));
}

}  // namespace

bool ShapesFollowShapes(const Graph& graph) { return WithElementsOfInputs(graph).has_value(); }

std::vector<int> SteadyNodes(const Graph& graph) {
  std::vector<int> steady;
  const std::optional<Values> elements = WithElementsOfInputs(graph);
  for (size_t n = 0; elements && n < graph.nodes.size(); ++n) {
    const std::vector<int>& outputs = graph.nodes[n].outputs;
    const bool goes_by_elements = std::ranges::any_of(outputs, [&](int value) { return elements->contains(value); });
    if (!goes_by_elements) steady.push_back(static_cast<int>(n));
  }
  return steady;
}

}  // namespace swizzle::regions
