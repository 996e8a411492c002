#include "model_loader/regions/idioms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "kernels/operator/element_functions.h"
#include "model_loader/regions/survey.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/functions.h"
#include "model_loader/semantics/given_axes.h"
#include "model_loader/semantics/point_function.h"

namespace swizzle::regions {
namespace {

constexpr std::array<std::string_view, 7> kOfGelu = {"Add", "Div", "Erf", "Mul", "Pow", "Sub", "Tanh"};
// Where functions that are written out are compared with those that plans know, and how near they have to be.
constexpr std::array<double, 10> kSamples = {-6.0, -2.5, -1.0, -0.3, -0.01, 0.0, 0.2, 0.9, 2.0, 5.0};
constexpr double kNear = 2e-6;

class Finder {
 public:
  Finder(const Graph& graph, const Survey& survey) : graph_(graph), survey_(survey), taken_(graph.nodes.size()) {}

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

  std::optional<float> Number(int value) const {
    if (!IsKnown(value)) return std::nullopt;
    const interpreter::Array& array = survey_.known.at(value);
    if (array.dtype != DType::kFloat32 || array.elements() != 1) return std::nullopt;
    return array.As<float>()[0];
  }

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

  // The function of x that makes `value`, at `at`; its nodes. Nothing where it reads anything else.
  std::optional<double> Evaluate(int value, int x, double at, std::set<int>& nodes) const {
    if (value == x) return at;
    if (const auto number = Number(value)) return *number;
    const int maker = survey_.MakerOf(value);
    constexpr size_t kMostNodes = 12;
    if (maker == kOutside || nodes.size() > kMostNodes || --steps_ < 0) return std::nullopt;
    const Node& node = NodeAt(maker);
    if (!IsOfGelu(node)) return std::nullopt;
    nodes.insert(maker);
    std::vector<double> operands;
    for (const int input : node.inputs) {
      const auto operand = Evaluate(input, x, at, nodes);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    const auto function = PointFunctionOf(node, DType::kFloat32);
    return function ? std::optional((*function)(operands)) : std::nullopt;
  }

  static bool IsOfGelu(const Node& node) { return std::ranges::find(kOfGelu, node.op) != kOfGelu.end(); }

  template <typename Function>
  bool Computes(int value, int x, const Function& function, std::set<int>& nodes) const {
    return std::ranges::all_of(kSamples, [&](double at) {
      const auto is = Evaluate(value, x, at, nodes);
      return is && std::abs(*is - function(at)) <= kNear * std::max(1.0, std::abs(function(at)));
    });
  }

  // The values that the node's may be a function of: those before it.
  std::vector<int> ValuesBefore(int index) const {
    std::vector<int> values;
    std::vector<int> open = {index};
    for (int depth = 0; depth < 4; ++depth) {
      std::vector<int> next;
      for (const int node : open) {
        for (const int input : NodeAt(node).inputs) {
          if (input == kNoValue || IsKnown(input)) continue;
          values.push_back(input);
          const int maker = survey_.MakerOf(input);
          if (maker != kOutside && IsOfGelu(NodeAt(maker))) next.push_back(maker);
        }
      }
      open = std::move(next);
    }
    return values;
  }

  // From its error function, or hyperbolic tangent, on.
  std::optional<Idiom> WrittenGelu(int index) const {
    const bool exact = NodeAt(index).op == "Erf";
    for (const int x : ValuesBefore(index)) {
      std::vector<int> open = {index};
      for (int depth = 0; depth < 4 && !open.empty(); ++depth) {
        std::vector<int> next;
        for (const int node : open) {
          const int value = NodeAt(node).outputs[0];
          std::set<int> nodes;
          if (exact ? Computes(value, x, elementwise::kGelu, nodes)
                    : Computes(value, x, elementwise::kGeluTanh, nodes)) {
            const Function function = {exact ? FunctionKind::kGelu : FunctionKind::kGeluTanh, 0.0f, 0.0f};
            return Idiom{{nodes.begin(), nodes.end()}, x, value, "Function", {}, FunctionAttributes(function)};
          }
          const std::vector<int>& readers = survey_.readers[static_cast<size_t>(value)];
          if (readers.size() > 2) continue;
          std::ranges::copy_if(readers, std::back_inserter(next),
                               [&](int reader) { return reader != kOutside && IsOfGelu(NodeAt(reader)); });
        }
        open = std::move(next);
      }
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Survey& survey_;
  std::vector<bool> taken_;             // by node
  mutable int64_t steps_ = 10'000'000;  // that evaluating functions may still take
  std::vector<Idiom> idioms_;
};

}  // namespace

std::vector<Idiom> FindIdioms(const Graph& graph, const Survey& survey) { return Finder(graph, survey).Run(); }

}  // namespace swizzle::regions
