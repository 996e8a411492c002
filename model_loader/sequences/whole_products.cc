#include "model_loader/sequences/whole_products.h"

#include <optional>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle::sequences {
namespace {

class Resolver {
 public:
  explicit Resolver(Graph& graph) : graph_(graph), rewriter_(graph) {}

  Status Run() {
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      const Node& node = rewriter_.node(i);
      if (rewriter_.IsErased(i) || !node.domain.empty()) continue;
      Status status;
      if (node.op == "QuantizeLinear") status = QuantiseConstant(i);
      if (node.op == "DequantizeLinear") status = Dequantise(i);
      if (node.op == "MatMulInteger") status = BecomeMatMul(i);
      if (!status.ok() && status.code() != StatusCode::kUnimplemented) return Annotate(status, Describe(node));
    }
    rewriter_.Finish();
    return {};
  }

 private:
  const Tensor* ConstantAt(const Node& node, size_t i) const {
    const int value = node.Input(i);
    return graph_.IsConstant(value) ? &*graph_.values[value].constant : nullptr;
  }

  // A constant of these whole numbers.
  StatusOr<int> AddReal(int given, const Tensor& scales, const Tensor* zero_points, int64_t axis) {
    const Tensor& wholes = *graph_.values[given].constant;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor reals, DequantisedTensor(wholes, scales, zero_points, axis));
    std::optional<WholeNumbers> numbers;
    if (wholes.dtype != DType::kInt32) {
      SWIZZLE_ASSIGN_OR_RETURN(Quantisation quantisation, QuantisationOf(scales, zero_points, wholes.dtype));
      const auto rank = static_cast<int64_t>(wholes.shape.size());
      numbers = WholeNumbers{std::move(quantisation), axis < 0 ? axis + rank : axis};
    }
    const int constant = graph_.AddConstant(graph_.values[given].name, std::move(reals));
    graph_.values[constant].wholes = std::move(numbers);
    return constant;
  }

  Status QuantiseConstant(int index) {
    const Node& node = rewriter_.node(index);
    const Tensor *reals = ConstantAt(node, 0), *scales = ConstantAt(node, 1), *zero_points = ConstantAt(node, 2);
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
    const Tensor *scales = ConstantAt(node, 1), *zero_points = ConstantAt(node, 2);
    if (scales == nullptr || (node.Input(2) != kNoValue && zero_points == nullptr)) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", 1));
    if (graph_.IsConstant(node.inputs[0])) {
      SWIZZLE_ASSIGN_OR_RETURN(const int real, AddReal(node.inputs[0], *scales, zero_points, axis));
      Replace(index, real);
      return {};
    }
    // Rows of a table of whole numbers are rows of the table of real ones.
    const int gather = rewriter_.Producer(node.inputs[0]);
    if (gather < 0 || rewriter_.node(gather).op != "Gather" || rewriter_.SoleReader(node.inputs[0]) != index) return {};
    const Node& look_up = rewriter_.node(gather);
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t gathered, IntAttribute(look_up, "axis", 0));
    if (!graph_.IsConstant(look_up.inputs[0]) || gathered != 0 || scales->elements() != 1) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int table, AddReal(look_up.inputs[0], *scales, zero_points, 0));
    rewriter_.SetInputs(gather, {table, look_up.inputs[1]});
    graph_.values[look_up.outputs[0]].dtype = DType::kFloat32;
    Replace(index, look_up.outputs[0]);
    return {};
  }

  void Replace(int index, int value) {
    rewriter_.ReplaceReads(rewriter_.node(index).outputs[0], value);
    rewriter_.Erase(index);
  }

  // The only reader of the value; -1 if there is none such, or it is another operator.
  int SoleReader(int value, const char* op) {
    const int reader = rewriter_.SoleReader(value);
    return reader >= 0 && rewriter_.node(reader).op == op ? reader : -1;
  }

  // x_scale * weight_scale, either way round: the weight's.
  const Tensor* WeightScales(int product, int x_scale) {
    const int maker = rewriter_.Producer(product);
    if (maker < 0 || rewriter_.node(maker).op != "Mul") return nullptr;
    const Node& mul = rewriter_.node(maker);
    const size_t other = mul.inputs[0] == x_scale ? 1 : 0;
    return mul.inputs[1 - other] == x_scale ? ConstantAt(mul, other) : nullptr;
  }

  // MatMulInteger(x, weight) -> Cast -> Mul(.., x_scale * weight_scale).
  Status BecomeMatMul(int index) {
    const Node& node = rewriter_.node(index);
    const int quantise = rewriter_.Producer(node.inputs[0]);
    const Tensor* const zero_points = ConstantAt(node, 3);
    if (quantise < 0 || rewriter_.node(quantise).op != "DynamicQuantizeLinear" || ConstantAt(node, 1) == nullptr) {
      return {};
    }
    const Node& quantised = rewriter_.node(quantise);
    const bool of_one = node.inputs[0] == quantised.outputs[0] && node.Input(2) == quantised.outputs[2];
    if (!of_one || (node.Input(3) != kNoValue && zero_points == nullptr)) return {};
    const int cast = SoleReader(node.outputs[0], "Cast");
    const int mul = cast < 0 ? -1 : SoleReader(rewriter_.node(cast).outputs[0], "Mul");
    if (mul < 0) return {};
    const std::vector<int>& factors = rewriter_.node(mul).inputs;
    const int factor = factors[0] == rewriter_.node(cast).outputs[0] ? factors[1] : factors[0];
    const Tensor* const scales = WeightScales(factor, quantised.outputs[1]);
    if (scales == nullptr) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[1], *scales, zero_points, 1));
    const int x = quantised.inputs[0];
    Node& product = rewriter_.node(index);
    product.op = "MatMul";
    product.attributes = {{kByPosition, int64_t{1}}};
    rewriter_.SetInputs(index, {x, weight});
    rewriter_.TakeOutput(index, mul);
    rewriter_.Erase(cast);
    return {};
  }

  Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Status ResolveWholeNumbers(Graph& graph) { return Resolver(graph).Run(); }

}  // namespace swizzle::sequences
