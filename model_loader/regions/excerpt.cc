#include "model_loader/regions/excerpt.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace swizzle::regions {
namespace {

// Operators whose canonical form says nothing of how large planes are, or no more than ExtentRules learn. The others'
// paddings, windows or weights may.
constexpr std::string_view kByRules[] = {"Abs",
                                         "Add",
                                         "BatchNormalization",
                                         "Cast",
                                         "Clip",
                                         "Concat",
                                         "DepthToSpace",
                                         "DequantizeLinear",
                                         "Div",
                                         "Dropout",
                                         "Flatten",
                                         "Gelu",
                                         "Gemm",
                                         "GlobalAveragePool",
                                         "GlobalMaxPool",
                                         "HardSigmoid",
                                         "HardSwish",
                                         "Identity",
                                         "LayerNormalization",
                                         "LeakyRelu",
                                         "MatMul",
                                         "Max",
                                         "Min",
                                         "Mul",
                                         "Neg",
                                         "PRelu",
                                         "Pad",
                                         "Pow",
                                         "QuantizeLinear",
                                         "ReduceMax",
                                         "ReduceMean",
                                         "Relu",
                                         "Reshape",
                                         "Resize",
                                         "Sigmoid",
                                         "Softmax",
                                         "Squeeze",
                                         "Sub",
                                         "Sum",
                                         "Tanh",
                                         "Transpose",
                                         "Unsqueeze",
                                         "Upsample"};

// How the padding goes by the plane; nothing where attributes are wrong, or where it is counted but for what ceil_mode
// adds: there are other layers for planes to which that adds something.
std::optional<PaddingRule> PaddingOf(const Node& node) {
  const StatusOr<AutoPad> mode = AutoPadOf(node);
  const StatusOr<int64_t> ceil = IntAttribute(node, "ceil_mode", 0);
  const StatusOr<int64_t> counts = IntAttribute(node, "count_include_pad", 0);
  const StatusOr<std::vector<int64_t>> pads = IntsAttribute(node, "pads", {});
  if (!mode.ok() || !ceil.ok() || !counts.ok() || !pads.ok() || (*ceil != 0 && *counts != 0)) return std::nullopt;
  PaddingRule rule;
  if (*mode == AutoPad::kSameUpper || *mode == AutoPad::kSameLower) rule.same = *mode;
  rule.cut = *ceil != 0;
  if (pads->empty()) return rule;
  const bool is_line = pads->size() == 2;
  if (!is_line && pads->size() != 4) return std::nullopt;
  rule.bottom = is_line ? 0 : static_cast<int32_t>((*pads)[2]);
  rule.right = static_cast<int32_t>(pads->back());
  return rule;
}

bool HasWindow(const Node& node) { return node.op == "Conv" || node.op == "MaxPool" || node.op == "AveragePool"; }

// Whether the node takes channels apart, rather than planes.
bool IsOfChannels(const Node& node, const Survey& survey) {
  if (node.op == "Split") {
    const StatusOr<int64_t> axis = IntAttribute(node, "axis", 0);
    return axis.ok() && *axis == 1;
  }
  constexpr size_t kAxes = 3;
  const auto known = survey.known.find(node.Input(kAxes));
  if (known == survey.known.end()) {
    const StatusOr<std::vector<int64_t>> axes = IntsAttribute(node, "axes", {});
    return axes.ok() && *axes == std::vector<int64_t>{1};
  }
  const interpreter::Array& axes = known->second;
  if (axes.elements() != 1) return false;
  return axes.dtype == DType::kInt64 ? axes.As<int64_t>()[0] == 1
                                     : axes.dtype == DType::kInt32 && axes.As<int32_t>()[0] == 1;
}

bool GoesByRules(const Node& node, const Survey& survey) {
  if (!node.domain.empty()) return false;
  if (std::ranges::find(kByRules, node.op) != std::end(kByRules)) return true;
  if (node.op == "Slice" || node.op == "Split") return IsOfChannels(node, survey);
  if (node.op == "ConvTranspose") {
    return !node.attributes.contains("auto_pad") && !node.attributes.contains("output_shape");
  }
  return HasWindow(node) && PaddingOf(node).has_value();
}

class Excerpter {
 public:
  Excerpter(const Graph& graph, const Survey& survey, const Region& region)
      : graph_(graph), survey_(survey), region_(region) {
    excerpt_.graph.name = graph.name;
    excerpt_.graph.producer = graph.producer;
    excerpt_.graph.opset = graph.opset;
    excerpt_.region.form = region.form;
  }

  Excerpt Run() {
    for (const int input : region_.inputs) excerpt_.region.inputs.push_back(ValueFor(input));
    for (const int node : region_.nodes) {
      for (const int input : graph_.nodes[static_cast<size_t>(node)].inputs) AddMakerOfWeight(input);
      excerpt_.region.nodes.push_back(AddNode(node));
    }
    for (const int output : region_.outputs) excerpt_.region.outputs.push_back(ValueFor(output));
    Survey& own = excerpt_.survey;
    own.shapes_follow = survey_.shapes_follow;
    own.idiom_of.assign(excerpt_.graph.nodes.size(), -1);
    for (const Idiom& idiom : survey_.idioms) AddIdiom(idiom);
    return std::move(excerpt_);
  }

 private:
  int ValueFor(int value) {
    if (value == kNoValue) return kNoValue;
    const auto [found, is_new] = values_.try_emplace(value, static_cast<int>(excerpt_.graph.values.size()));
    if (!is_new) return found->second;
    const auto index = static_cast<size_t>(value);
    Value& own = excerpt_.graph.values.emplace_back();
    own.name = graph_.values[index].name;
    own.dtype = graph_.values[index].dtype;
    Survey& survey = excerpt_.survey;
    survey.shapes.push_back(survey_.shapes[index]);
    survey.other_shapes.push_back(survey_.other_shapes[index]);
    survey.dtypes.push_back(survey_.dtypes[index]);
    // Whether something reads it is all that matters yet.
    survey.makers.push_back(Survey::kOutside);
    survey.readers.emplace_back(survey_.readers[index].empty() ? 0 : 1, Survey::kOutside);
    if (const auto known = survey_.known.find(value); known != survey_.known.end()) {
      survey.known.emplace(found->second, known->second);
    }
    return found->second;
  }

  int AddNode(int index) {
    const auto [found, is_new] = nodes_.try_emplace(index, static_cast<int>(excerpt_.graph.nodes.size()));
    if (!is_new) return found->second;
    Node node = graph_.nodes[static_cast<size_t>(index)];
    for (int& input : node.inputs) input = ValueFor(input);
    for (int& output : node.outputs) {
      output = ValueFor(output);
      if (output != kNoValue) excerpt_.survey.makers[static_cast<size_t>(output)] = found->second;
    }
    excerpt_.graph.nodes.push_back(std::move(node));
    return found->second;
  }

  // Extraction asks for what makes a weight of whole numbers.
  void AddMakerOfWeight(int value) {
    const int maker = survey_.MakerOf(value);
    if (maker == Survey::kOutside || !survey_.IsKnown(value)) return;
    if (graph_.nodes[static_cast<size_t>(maker)].op == "DequantizeLinear") AddNode(maker);
  }

  void AddIdiom(const Idiom& idiom) {
    if (!nodes_.contains(idiom.nodes.front()) && !nodes_.contains(idiom.nodes.back())) return;
    Idiom own = idiom;
    const auto index = static_cast<int>(excerpt_.survey.idioms.size());
    own.nodes.clear();
    for (const int node : idiom.nodes) {
      if (const auto found = nodes_.find(node); found != nodes_.end()) own.nodes.push_back(found->second);
    }
    for (const int node : own.nodes) excerpt_.survey.idiom_of[static_cast<size_t>(node)] = index;
    own.input = ValueFor(idiom.input);
    own.output = ValueFor(idiom.output);
    for (int& constant : own.constants) constant = ValueFor(constant);
    excerpt_.survey.idioms.push_back(std::move(own));
  }

  const Graph& graph_;
  const Survey& survey_;
  const Region& region_;
  Excerpt excerpt_;
  std::map<int, int> values_, nodes_;  // of graph_ -> of the excerpt
};

}  // namespace

Excerpt ExcerptOf(const Graph& graph, const Survey& survey, const Region& region) {
  return Excerpter(graph, survey, region).Run();
}

bool GoesByExtentRules(const Excerpt& excerpt) {
  return std::ranges::all_of(excerpt.region.nodes, [&](int index) {
    const auto node = static_cast<size_t>(index);
    return excerpt.survey.IdiomOf(node) != nullptr || GoesByRules(excerpt.graph.nodes[node], excerpt.survey);
  });
}

PaddingRules PaddingsOf(const Excerpt& excerpt) {
  PaddingRules rules;
  for (const Node& node : excerpt.graph.nodes) {
    const std::optional<PaddingRule> rule = HasWindow(node) ? PaddingOf(node) : std::nullopt;
    if (rule && (rule->same != AutoPad::kExplicit || rule->cut)) rules[node.name] = *rule;
  }
  return rules;
}

RowShapes OtherRows(const Survey& survey, const Region& region) {
  RowShapes rows;
  bool any = false;
  for (const int input : region.inputs) {
    const auto index = static_cast<size_t>(input);
    if (!survey.shapes[index] || !survey.other_shapes[index]) return {};
    Shape& row = rows.emplace_back(RowShape(*survey.shapes[index], region.form));
    const Shape other = RowShape(*survey.other_shapes[index], region.form);
    int64_t factor = 2;
    for (size_t d = 0; d < row.size(); ++d) {
      if (other.size() != row.size()) return {};
      if (row[d] == other[d]) continue;
      row[d] *= factor++;
      any = true;
    }
  }
  return any ? rows : RowShapes();
}

StatusOr<Network> NetworkOf(const Excerpt& excerpt, const RowShapes& rows) {
  Survey survey = excerpt.survey;
  // What is within has as many dimensions as in the survey, but other ones.
  for (const int output : excerpt.region.outputs) survey.shapes[static_cast<size_t>(output)].reset();
  for (size_t i = 0; i < rows.size(); ++i) {
    // Of one row, in as many dimensions as before.
    std::optional<Shape>& shape = survey.shapes[static_cast<size_t>(excerpt.region.inputs[i])];
    Shape of_row(shape->size() - rows[i].size(), 1);
    of_row.insert(of_row.end(), rows[i].begin(), rows[i].end());
    shape = std::move(of_row);
  }
  return NetworkOf(excerpt.graph, survey, excerpt.region);
}

}  // namespace swizzle::regions
