#include "model_loader/expansions/expand.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

constexpr std::string_view kLearning = "ai.onnx.ml";
constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr Expansion kExpansions[] = {
    {"", "Attention", Attention},
    {"", "CenterCropPad", CenterCropPad},
    {"", "DequantizeLinear", DequantizeLinear, WantsRealConstant},
    {"", "GlobalLpPool", GlobalLpPool},
    {"", "LpPool", LpPool},
    {"", "QuantizeLinear", QuantizeLinear, WantsZeroPoint},
    {"", "RotaryEmbedding", RotaryEmbedding},
    {"", "Swish", QuickGelu},
    {kLearning, "ArrayFeatureExtractor", ArrayFeatureExtractor},
    {kLearning, "Binarizer", Binarizer},
    {kLearning, "FeatureVectorizer", FeatureVectorizer},
    {kLearning, "Imputer", Imputer},
    {kLearning, "LinearClassifier", LinearClassifier},
    {kLearning, "LinearRegressor", LinearRegressor},
    {kLearning, "Normalizer", Normalizer},
    {kLearning, "Scaler", Scaler},
    {kMicrosoft, "Attention", PackedAttention},
    {kMicrosoft, "BiasAdd", BiasAdd},
    {kMicrosoft, "BiasGelu", BiasGelu},
    {kMicrosoft, "BiasSoftmax", BiasSoftmax},
    {kMicrosoft, "BiasSplitGelu", BiasSplitGelu},
    {kMicrosoft, "DequantizeLinear", DequantizeLinear},
    {kMicrosoft, "DynamicQuantizeLSTM", DynamicQuantizeLstm},
    {kMicrosoft, "EmbedLayerNormalization", EmbedLayerNorm},
    {kMicrosoft, "ExpandDims", ExpandDims},
    {kMicrosoft, "FastGelu", FastGelu},
    {kMicrosoft, "FusedConv", FusedConv},
    {kMicrosoft, "FusedGemm", FusedGemm},
    {kMicrosoft, "FusedMatMul", FusedMatMul},
    {kMicrosoft, "FusedMatMulActivation", FusedMatMul},
    {kMicrosoft, "GatherND", FormerTwin},
    {kMicrosoft, "Gelu", BiasGelu},
    {kMicrosoft, "GridSample", FormerGridSample},
    {kMicrosoft, "GroupQueryAttention", GroupQueryAttention},
    {kMicrosoft, "MatMulNBits", MatMulNBits},
    {kMicrosoft, "MultiHeadAttention", MultiHeadAttention},
    {kMicrosoft, "Pad", FormerTwin},
    {kMicrosoft, "QAttention", QuantisedAttention},
    {kMicrosoft, "QEmbedLayerNormalization", QuantisedEmbedLayerNorm},
    {kMicrosoft, "QuantizeLinear", QuantizeLinear},
    {kMicrosoft, "QuickGelu", QuickGelu},
    {kMicrosoft, "Range", FormerRange},
    {kMicrosoft, "RotaryEmbedding", RotaryEmbedding},
    {kMicrosoft, "SkipLayerNormalization", SkipLayerNorm},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", SkipLayerNorm},
    {kMicrosoft, "TransposeMatMul", FusedMatMul},
    {kMicrosoft, "Trilu", FormerTwin},
};

using Key = std::pair<std::string_view, std::string_view>;
constexpr Key KeyOf(const Expansion& row) { return {row.domain, row.op}; }

static_assert(std::is_sorted(std::begin(kExpansions), std::end(kExpansions),
                             [](const Expansion& a, const Expansion& b) { return KeyOf(a) < KeyOf(b); }));

// Whether all results that somebody may read are there.
Status CheckResults(const Graph& graph, const Node& node, const std::vector<Node>& made) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int output = node.outputs[i];
    const auto makes = [&](const Node& by) { return std::ranges::find(by.outputs, output) != by.outputs.end(); };
    if (output == kNoValue || graph.IsConstant(output) || std::ranges::any_of(made, makes)) continue;
    return Unimplemented(Describe(node), ": its output ", i, " is not supported");
  }
  return {};
}

Status CheckSupport(const Node& node, const std::vector<Node>& made, OperatorFinder find) {
  for (const Node& part : made) {
    if (find(part.domain, part.op) != nullptr) continue;
    return Unimplemented("operator ", part.op, ", which ", Describe(node), " is made of, is not supported");
  }
  return {};
}

// Constants that are only in what was written out, such as packed weights, are not held any longer.
void DropUnread(Graph& graph, std::set<int> given) {
  for (const Node& node : graph.nodes) {
    for (const int input : node.inputs) given.erase(input);
  }
  for (const GraphOutput& output : graph.outputs) given.erase(output.value);
  given.erase(kNoValue);
  for (const int value : given) graph.values[static_cast<size_t>(value)].constant.reset();
}

}  // namespace

std::span<const Expansion> Expansions() { return kExpansions; }

const Expansion* FindExpansion(std::string_view domain, std::string_view op) {
  const Key key = {domain, op};
  const auto found = std::lower_bound(std::begin(kExpansions), std::end(kExpansions), key,
                                      [](const Expansion& row, const Key& name) { return KeyOf(row) < name; });
  return found != std::end(kExpansions) && KeyOf(*found) == key ? found : nullptr;
}

Status ExpandOperators(Graph& graph, OperatorFinder find, const Hints& hints) {
  const auto expansion_of = [&](const Node& node) { return FindExpansion(node.domain, node.op); };
  if (std::ranges::none_of(graph.nodes, [&](const Node& node) { return expansion_of(node) != nullptr; })) return {};
  ValueFacts facts(graph, hints);
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  std::set<int> given;  // to nodes that were written out
  for (Node& node : nodes) {
    const Expansion* const expansion = expansion_of(node);
    const bool is_known = find(node.domain, node.op) != nullptr;
    if (expansion != nullptr && (!is_known || expansion->wants != nullptr)) {
      Site site(node, graph, facts);
      if (!is_known || expansion->wants(site)) {
        const Status written = expansion->write(site);
        if (!written.ok()) return Annotate(written, Describe(node));
        std::vector<Node> made = site.Take();
        SWIZZLE_RETURN_IF_ERROR(CheckResults(graph, node, made));
        SWIZZLE_RETURN_IF_ERROR(CheckSupport(node, made, find));
        std::ranges::move(made, std::back_inserter(graph.nodes));
        given.insert(node.inputs.begin(), node.inputs.end());
        continue;
      }
    }
    facts.Note(node);
    graph.nodes.push_back(std::move(node));
  }
  DropUnread(graph, given);
  return {};
}

}  // namespace swizzle::expansions
