#include "model_loader/regions/idioms.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "model_loader/regions/survey.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/functions.h"
#include "model_loader/semantics/given_axes.h"
#include "model_loader/semantics/written_functions.h"

namespace swizzle::regions {
namespace {

class SurveyUses final : public ValueUses {
 public:
  explicit SurveyUses(const Survey& survey) : survey_(survey) {}

  int MakerOf(int value) const override { return survey_.MakerOf(value); }
  std::span<const int> ReadersOf(int value) const override { return survey_.readers[static_cast<size_t>(value)]; }
  bool IsKnown(int value) const override { return value != kNoValue && survey_.IsKnown(value); }
  std::optional<float> Number(int value) const override {
    if (!IsKnown(value)) return std::nullopt;
    const interpreter::Array& array = survey_.known.at(value);
    if (array.dtype != DType::kFloat32 || array.elements() != 1 || array.rank() > 1) return std::nullopt;
    return array.As<float>()[0];
  }

 private:
  static_assert(Survey::kOutside == ValueUses::kOutside);
  const Survey& survey_;
};

class Finder {
 public:
  Finder(const Graph& graph, const Survey& survey)
      : graph_(graph), survey_(survey), taken_(graph.nodes.size()), uses_(survey), written_(graph, uses_) {}

  std::vector<Idiom> Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      std::optional<Idiom> found;
      if (node.op == "LayerNormalization" || IsRmsNode(node)) found = NormNode(static_cast<int>(n));
      if (node.op == "Sqrt") found = WrittenNorm(static_cast<int>(n));
      if (node.op == "Erf" || node.op == "Tanh") found = WrittenGelu(static_cast<int>(n));
      if (node.op == "Tanh" && !found) found = FunctionNode(static_cast<int>(n), FunctionKind::kTanh);
      if (node.op == "Gelu") found = GeluNode(static_cast<int>(n));
      if (node.op == "QuantizeLinear") found = Rounding(static_cast<int>(n));
      if (found) Take(*std::move(found));
    }
    return std::move(idioms_);
  }

 private:
  static constexpr int kOutside = Survey::kOutside;

  const Node& NodeAt(int index) const { return graph_.nodes[static_cast<size_t>(index)]; }
  const Node* MakerOf(int value, std::string_view op) const {
    const int maker = survey_.MakerOf(value);
    return maker != kOutside && NodeAt(maker).op == op ? &NodeAt(maker) : nullptr;
  }
  bool IsKnown(int value) const { return value != kNoValue && survey_.IsKnown(value); }

  std::optional<float> Number(int value) const { return uses_.Number(value); }

  // Whether it is one number for each element of the last dimension of `value`.
  bool IsVector(int constant, int value) const {
    if (!IsKnown(constant) || !survey_.shapes[static_cast<size_t>(value)]) return false;
    const interpreter::Array& array = survey_.known.at(constant);
    const Shape& shape = *survey_.shapes[static_cast<size_t>(value)];
    return array.dtype == DType::kFloat32 && !shape.empty() && array.elements() == shape.back() &&
           !array.shape.empty() && array.shape.back() == shape.back();
  }

  // Keeps the idiom, unless something else reads what it makes on the way.
  void Take(Idiom idiom) {
    std::ranges::sort(idiom.nodes);
    for (const int node : idiom.nodes) {
      if (taken_[static_cast<size_t>(node)]) return;
      for (const int output : NodeAt(node).outputs) {
        if (output == idiom.output || output == kNoValue) continue;
        for (const int reader : survey_.readers[static_cast<size_t>(output)]) {
          if (!std::ranges::binary_search(idiom.nodes, reader)) return;
        }
      }
    }
    for (const int node : idiom.nodes) taken_[static_cast<size_t>(node)] = true;
    idioms_.push_back(std::move(idiom));
  }

  std::optional<Idiom> FunctionNode(int index, FunctionKind kind) const {
    const Node& node = NodeAt(index);
    return Idiom{{index}, node.inputs[0], node.outputs[0], "Function", {}, FunctionAttributes({kind, 0.0f, 0.0f})};
  }

  // By one known scale and zero point, to and fro.
  std::optional<Idiom> Rounding(int index) const {
    const Node& node = NodeAt(index);
    const int reader = survey_.OnlyReaderOf(node.outputs[0]);
    if (reader == kOutside) return std::nullopt;
    const Node& back = NodeAt(reader);
    const auto scale = Number(node.Input(1));
    if (back.op != "DequantizeLinear" || back.inputs[0] != node.outputs[0] || !scale) return std::nullopt;
    if (Number(back.Input(1)) != scale || !IsSame(node.Input(2), back.Input(2))) return std::nullopt;
    return Idiom{{index, reader}, node.inputs[0], back.outputs[0], node.op, {}, {}};
  }

  // Whether both are left out, or known to hold the same one number.
  bool IsSame(int a, int b) const {
    if (a == kNoValue || b == kNoValue) return a == b;
    if (!IsKnown(a) || !IsKnown(b)) return false;
    const interpreter::Array &first = survey_.known.at(a), &second = survey_.known.at(b);
    return first.dtype == second.dtype && first.elements() == 1 && second.elements() == 1 &&
           std::ranges::equal(first.AsBytes(), second.AsBytes());
  }

  std::optional<Idiom> GeluNode(int index) const {
    const auto kind = GeluKindOf(NodeAt(index));
    return kind.ok() ? FunctionNode(index, *kind) : std::nullopt;
  }

  std::optional<Idiom> NormNode(int index) const {
    const Node& node = NodeAt(index);
    const auto axis = IntAttribute(node, "axis", -1);
    const auto epsilon = FloatAttribute(node, "epsilon", 1e-5f);
    const auto& shape = survey_.shapes[static_cast<size_t>(node.inputs[0])];
    if (!axis.ok() || !epsilon.ok() || !shape) return std::nullopt;
    const bool last = *axis == -1 || *axis == static_cast<int64_t>(shape->size()) - 1;
    const int shift = node.Input(2);
    if (!last || !IsVector(node.inputs[1], node.inputs[0])) return std::nullopt;
    if (shift != kNoValue && !IsVector(shift, node.inputs[0])) return std::nullopt;
    return Norm({index}, node.inputs[0], node.outputs[0], {node.inputs[1], shift}, *epsilon, !IsRmsNode(node));
  }

  static bool IsRmsNode(const Node& node) {
    return node.op == "RMSNormalization" || node.op == "SimplifiedLayerNormalization";
  }

  static Idiom Norm(std::vector<int> nodes, int input, int output, std::vector<int> constants, float epsilon,
                    bool centred) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return {std::move(nodes),
            input,
            output,
            "LayerNorm",
            std::move(constants),
            {{"epsilon", epsilon}, {"centred", int64_t{centred}}}};
  }

  // Whether the node is the mean along the last dimension, which stays.
  bool IsLastMean(const Node* node) const {
    if (node == nullptr || node->op != "ReduceMean") return false;
    const auto keep = KeepsAxes(*node);
    const auto of_input = [&]() -> StatusOr<std::vector<int64_t>> {
      const int given = node->Input(1);
      if (!IsKnown(given) || survey_.known.at(given).dtype != DType::kInt64) return InvalidArgument("not known");
      const auto elements = survey_.known.at(given).As<int64_t>();
      return std::vector<int64_t>(elements.begin(), elements.end());
    };
    const auto axes = GivenAxes(*node, node->Input(1) != kNoValue, of_input);
    const auto& shape = survey_.shapes[static_cast<size_t>(node->inputs[0])];
    if (!keep.ok() || !*keep || !axes.ok() || !*axes || !shape) return false;
    const auto rank = static_cast<int64_t>(shape->size());
    const auto normal = NormalAxes(**axes, rank);
    return normal.ok() && *normal == std::vector<int64_t>{rank - 1};
  }

  const Node* MeanOf(int value) const {
    const Node* const mean = MakerOf(value, "ReduceMean");
    return IsLastMean(mean) ? mean : nullptr;
  }

  // x - mean(x); x, or kNoValue.
  int Centred(int value, std::vector<int>& nodes) const {
    const Node* const difference = MakerOf(value, "Sub");
    if (difference == nullptr) return kNoValue;
    const Node* const mean = MeanOf(difference->inputs[1]);
    if (mean == nullptr || mean->inputs[0] != difference->inputs[0]) return kNoValue;
    nodes.push_back(survey_.MakerOf(difference->inputs[1]));
    nodes.push_back(survey_.MakerOf(value));
    return difference->inputs[0];
  }

  // The value whose square this is, or kNoValue.
  int SquareRoot(int value) const {
    if (const Node* const power = MakerOf(value, "Pow"); power != nullptr) {
      return Number(power->inputs[1]) == 2.0f ? power->inputs[0] : kNoValue;
    }
    const Node* const product = MakerOf(value, "Mul");
    return product != nullptr && product->inputs[0] == product->inputs[1] ? product->inputs[0] : kNoValue;
  }

  // The only reader of the node's result, if it is of this operator.
  int OnlyReader(int node, std::string_view op) const {
    const int reader = survey_.OnlyReaderOf(NodeAt(node).outputs[0]);
    return reader != kOutside && NodeAt(reader).op == op ? reader : kOutside;
  }

  // The vector that the node combines `value` with, or kNoValue.
  int VectorBeside(int node, int value) const {
    const Node& combined = NodeAt(node);
    const int other = combined.inputs[combined.inputs[0] == value ? 1 : 0];
    return IsVector(other, value) ? other : kNoValue;
  }

  // (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + shift, from the root on, or without means, or
  // without the shift.
  std::optional<Idiom> WrittenNorm(int root) const {
    const Node* const sum = MakerOf(NodeAt(root).inputs[0], "Add");
    if (sum == nullptr) return std::nullopt;
    const bool constant_first = Number(sum->inputs[0]).has_value();
    const auto epsilon = Number(sum->inputs[constant_first ? 0 : 1]);
    const int variance = sum->inputs[constant_first ? 1 : 0];
    const Node* const mean = MeanOf(variance);
    if (!epsilon || mean == nullptr) return std::nullopt;
    std::vector<int> nodes = {root, survey_.MakerOf(NodeAt(root).inputs[0]), survey_.MakerOf(variance)};
    const int squared = SquareRoot(mean->inputs[0]);
    if (squared == kNoValue) return std::nullopt;
    nodes.push_back(survey_.MakerOf(mean->inputs[0]));
    const int centre = Centred(squared, nodes);
    const int x = centre == kNoValue ? squared : centre;
    const auto [numerator, quotient] = DividedBy(root, nodes);
    if (quotient == kOutside) return std::nullopt;
    if (numerator != squared && (centre == kNoValue || Centred(numerator, nodes) != x)) return std::nullopt;
    const int scaled = OnlyReader(quotient, "Mul");
    const int scale = scaled == kOutside ? kNoValue : VectorBeside(scaled, NodeAt(quotient).outputs[0]);
    if (scale == kNoValue) return std::nullopt;
    nodes.insert(nodes.end(), {quotient, scaled});
    int last = scaled, shift = kNoValue;
    if (const int shifted = OnlyReader(scaled, "Add"); shifted != kOutside) {
      shift = VectorBeside(shifted, NodeAt(scaled).outputs[0]);
      if (shift != kNoValue) nodes.push_back(last = shifted);
    }
    return Norm(std::move(nodes), x, NodeAt(last).outputs[0], {scale, shift}, *epsilon, centre != kNoValue);
  }

  // What the root divides, and the node that has the quotient; kOutside if it divides nothing. Some divide one by it
  // first, or take its reciprocal.
  std::pair<int, int> DividedBy(int root, std::vector<int>& nodes) const {
    constexpr std::pair<int, int> kNothing = {kNoValue, kOutside};
    const int value = NodeAt(root).outputs[0];
    int inverse = OnlyReader(root, "Reciprocal");
    if (inverse == kOutside) {
      const int quotient = OnlyReader(root, "Div");
      if (quotient == kOutside || NodeAt(quotient).inputs[1] != value) return kNothing;
      const int numerator = NodeAt(quotient).inputs[0];
      if (Number(numerator) != 1.0f) return {numerator, quotient};
      inverse = quotient;
    }
    const int product = OnlyReader(inverse, "Mul");
    if (product == kOutside) return kNothing;
    nodes.push_back(inverse);
    const Node& node = NodeAt(product);
    return {node.inputs[node.inputs[0] == NodeAt(inverse).outputs[0] ? 1 : 0], product};
  }

  // From its error function, or hyperbolic tangent, on.
  std::optional<Idiom> WrittenGelu(int index) {
    std::optional<WrittenFunction> found = written_.Around(index);
    if (!found) return std::nullopt;
    return Idiom{
        std::move(found->nodes), found->input, found->output, "Function", {}, FunctionAttributes(found->function)};
  }

  const Graph& graph_;
  const Survey& survey_;
  std::vector<bool> taken_;  // by node
  const SurveyUses uses_;
  WrittenFunctions written_;
  std::vector<Idiom> idioms_;
};

}  // namespace

std::vector<Idiom> FindIdioms(const Graph& graph, const Survey& survey) { return Finder(graph, survey).Run(); }

}  // namespace swizzle::regions
