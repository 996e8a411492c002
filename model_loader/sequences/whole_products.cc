#include "model_loader/sequences/whole_products.h"

#include <optional>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/semantics/integer_products.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle::sequences {
namespace {

class Resolver {
 public:
  explicit Resolver(Graph& graph) : graph_(graph), rewriter_(graph), products_(rewriter_) {}

  Status Run() {
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      if (rewriter_.IsErased(i) || products_.Unround(i)) continue;
      const std::string described = Describe(rewriter_.node(i));
      const Status status = rewriter_.node(i).domain.empty() ? Resolve(i) : ResolveFused(i);
      if (!status.ok() && status.code() != StatusCode::kUnimplemented) return Annotate(status, described);
    }
    rewriter_.Finish();
    return {};
  }

 private:
  Status Resolve(int i) {
    const std::string& op = rewriter_.node(i).op;
    if (op == "QuantizeLinear") return QuantiseConstant(i);
    if (op == "DequantizeLinear") return Dequantise(i);
    if (op == "QLinearMatMul") return Unround(i, "MatMul");
    return {};
  }

  // Of com.microsoft.
  Status ResolveFused(int i) {
    const std::string& op = rewriter_.node(i).op;
    if (op == "QLinearAdd") return Unround(i, "Add");
    if (op == "QAttention") return BecomeAttention(i);
    if (op == "QEmbedLayerNormalization") return BecomeEmbedding(i);
    return {};
  }

  Status QuantiseConstant(int index) {
    const Node& node = rewriter_.node(index);
    const Tensor *reals = products_.ConstantAt(node, 0), *scales = products_.ConstantAt(node, 1),
                 *zero_points = products_.ConstantAt(node, 2);
    if (reals == nullptr || scales == nullptr || reals->dtype != DType::kFloat32) return {};
    if (node.Input(2) != kNoValue && zero_points == nullptr) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", 1));
    const DType dtype = zero_points == nullptr ? DType::kUint8 : zero_points->dtype;
    SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, QuantisationOf(*scales, zero_points, dtype));
    SWIZZLE_ASSIGN_OR_RETURN(Tensor wholes, QuantisedTensor(*reals, quantisation, axis));
    Replace(index, graph_.AddConstant(graph_.values[node.outputs[0]].name, std::move(wholes)));
    return {};
  }

  Status Dequantise(int index) {
    const Node& node = rewriter_.node(index);
    const Tensor *scales = products_.ConstantAt(node, 1), *zero_points = products_.ConstantAt(node, 2);
    if (scales == nullptr || (node.Input(2) != kNoValue && zero_points == nullptr)) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", 1));
    if (!graph_.IsConstant(node.inputs[0])) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int real, products_.AddReal(node.inputs[0], *scales, zero_points, axis));
    Replace(index, real);
    return {};
  }

  void Replace(int index, int value) {
    rewriter_.ReplaceReads(rewriter_.node(index).outputs[0], value);
    rewriter_.Erase(index);
  }

  // The node becomes one of real numbers, which may be rounded by position.
  void BecomeReal(int index, const char* op, std::vector<int> inputs, bool by_position) {
    Node& node = rewriter_.node(index);
    node.op = op;
    if (by_position) node.attributes[kByPosition] = int64_t{1};
    rewriter_.SetInputs(index, std::move(inputs));
  }

  // Operands and results of QLinearMatMul and QLinearAdd stand alike: the numbers, their scale and zero point.
  static constexpr size_t kFirst = 0, kSecond = 3, kResult = 6;

  // What a real operator is to read in the place of whole numbers at input `i`; kNoValue where that isn't known.
  StatusOr<int> ReadInPlaceOf(const Node& node, size_t i, int64_t axis) {
    const Tensor *scales, *zero_points;
    if (!products_.OptionalConstant(node, i + 1, scales) || !products_.OptionalConstant(node, i + 2, zero_points) ||
        scales == nullptr) {
      return kNoValue;
    }
    if (graph_.IsConstant(node.inputs[i])) return products_.AddReal(node.inputs[i], *scales, zero_points, axis);
    const auto rounding = products_.RoundingOf(node.inputs[i]);
    const bool known = rounding && !rounding->by_position && products_.AreSame(node.inputs[i + 1], rounding->scale) &&
                       products_.AreSame(node.Input(i + 2), rounding->zero_point);
    return known ? rounding->read : kNoValue;
  }

  // A real operator, whose result QuantizeLinear rounds.
  Status Unround(int index, const char* op) {
    const Node node = rewriter_.node(index);
    SWIZZLE_ASSIGN_OR_RETURN(const int a, ReadInPlaceOf(node, kFirst, 1));
    SWIZZLE_ASSIGN_OR_RETURN(const int b, ReadInPlaceOf(node, kSecond, 1));
    if (a == kNoValue || b == kNoValue) return {};
    Value value;
    value.name = node.name + ".real";
    const int real = graph_.AddValue(std::move(value));
    rewriter_.InsertBefore(index, {op, "", node.name + ".real", {a, b}, {real}, {}});
    rewriter_.node(index).domain.clear();
    rewriter_.node(index).op = "QuantizeLinear";
    std::vector<int> inputs = {real, node.inputs[kResult]};
    if (node.Input(kResult + 1) != kNoValue) inputs.push_back(node.inputs[kResult + 1]);
    rewriter_.SetInputs(index, std::move(inputs));
    return {};
  }

  Status BecomeAttention(int index) {
    constexpr size_t kX = 0, kWeight = 1, kBias = 2, kXScale = 3, kWeightScale = 4, kMask = 5, kXZero = 6,
                     kWeightZero = 7, kPast = 8;
    const Node& node = rewriter_.node(index);
    const auto rounding = products_.RoundingOf(node.inputs[kX]);
    const Tensor* zero_points;
    const Tensor* const scales = products_.ConstantAt(node, kWeightScale);
    if (!rounding || products_.ConstantAt(node, kWeight) == nullptr || scales == nullptr) return {};
    if (!products_.OptionalConstant(node, kWeightZero, zero_points) ||
        !products_.AreSame(node.Input(kXScale), rounding->scale) ||
        !products_.AreSame(node.Input(kXZero), rounding->zero_point)) {
      return {};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, products_.AddReal(node.inputs[kWeight], *scales, zero_points, 1));
    std::vector<int> inputs = {rounding->read, weight, node.inputs[kBias], node.Input(kMask), node.Input(kPast)};
    BecomeReal(index, "Attention", std::move(inputs), rounding->by_position);
    return {};
  }

  // Tables, scale and shift are inputs [2, 7); their scales and zero points follow the mask, as many each.
  Status BecomeEmbedding(int index) {
    constexpr size_t kTables = 2, kMask = 7, kScales = 8, kZeros = 13;
    const Node& node = rewriter_.node(index);
    std::vector<int> inputs = {node.inputs[0], node.inputs[1]};
    for (size_t i = 0; kTables + i < kMask; ++i) {
      if (node.Input(kTables + i) == kNoValue) {  // of segments
        inputs.push_back(kNoValue);
        continue;
      }
      const Tensor *scales = products_.ConstantAt(node, kScales + i), *zero_points;
      if (products_.ConstantAt(node, kTables + i) == nullptr || scales == nullptr ||
          !products_.OptionalConstant(node, kZeros + i, zero_points)) {
        return {};
      }
      SWIZZLE_ASSIGN_OR_RETURN(const int real, products_.AddReal(node.inputs[kTables + i], *scales, zero_points, 0));
      inputs.push_back(real);
    }
    inputs.push_back(node.Input(kMask));
    BecomeReal(index, "EmbedLayerNormalization", std::move(inputs), false);
    return {};
  }

  Graph& graph_;
  Rewriter rewriter_;
  IntegerProducts products_;
};

}  // namespace

Status ResolveWholeNumbers(Graph& graph) { return Resolver(graph).Run(); }

}  // namespace swizzle::sequences
