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
      if (rewriter_.IsErased(i)) continue;
      const Node& node = rewriter_.node(i);
      const Status status = node.domain.empty() ? Resolve(i) : ResolveFused(i);
      if (!status.ok() && status.code() != StatusCode::kUnimplemented) return Annotate(status, Describe(node));
    }
    rewriter_.Finish();
    return {};
  }

 private:
  Status Resolve(int i) {
    const std::string& op = rewriter_.node(i).op;
    if (op == "QuantizeLinear") return QuantiseConstant(i);
    if (op == "DequantizeLinear") return Dequantise(i);
    if (op == "MatMulInteger") return BecomeMatMul(i);
    return {};
  }

  // Of com.microsoft.
  Status ResolveFused(int i) {
    const std::string& op = rewriter_.node(i).op;
    if (op == "DynamicQuantizeMatMul") return UnfuseDynamicMatMul(i);
    if (op == "MatMulIntegerToFloat") return UnfuseMatMul(i);
    if (op == "QAttention") return BecomeAttention(i);
    if (op == "QEmbedLayerNormalization") return BecomeEmbedding(i);
    return {};
  }

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

  // What makes an activation whole: what a real operator is to read in its place, and its scale.
  struct Rounding {
    int read;
    int scale;
    int zero_point;
    bool by_position;
  };

  // Of whole numbers: by DynamicQuantizeLinear, whose input is read, or by QuantizeLinear.
  std::optional<Rounding> RoundingOf(int wholes) {
    const int maker = rewriter_.Producer(wholes);
    if (maker < 0) return std::nullopt;
    const Node& node = rewriter_.node(maker);
    if (node.op == "QuantizeLinear") return Rounding{wholes, node.inputs[1], node.Input(2), false};
    if (node.op != "DynamicQuantizeLinear" || wholes != node.outputs[0] || node.outputs.size() < 3) return std::nullopt;
    return Rounding{node.inputs[0], node.outputs[1], node.outputs[2], true};
  }

  // Whether two values are one, or equal constants; kNoValue is only itself.
  bool AreSame(int a, int b) const {
    if (a == b) return true;
    if (a == kNoValue || b == kNoValue || !graph_.IsConstant(a) || !graph_.IsConstant(b)) return false;
    const Tensor &first = *graph_.values[a].constant, &second = *graph_.values[b].constant;
    return first.dtype == second.dtype && first.elements() == 1 && first.bytes == second.bytes;
  }

  // The constant at input `i`, or null; false if there is something else.
  bool OptionalConstant(const Node& node, size_t i, const Tensor*& constant) const {
    constant = ConstantAt(node, i);
    return constant != nullptr || node.Input(i) == kNoValue;
  }

  // What the product of whole numbers, Cast, is multiplied by: x's scale times the weight's, these in `by`. Of a static
  // scale the two may be one constant.
  std::optional<Tensor> WeightScales(int by, const Rounding& rounding) {
    const Tensor* const x = graph_.IsConstant(rounding.scale) ? &*graph_.values[rounding.scale].constant : nullptr;
    if (graph_.IsConstant(by)) {
      const bool real = x != nullptr && x->dtype == DType::kFloat32 && x->elements() == 1;
      Tensor scales = *graph_.values[by].constant;
      if (!real || scales.dtype != DType::kFloat32 || !(x->floats()[0] > 0.0f)) return std::nullopt;
      for (float& scale : scales.floats()) scale /= x->floats()[0];
      return scales;
    }
    const int maker = rewriter_.Producer(by);
    if (maker < 0 || rewriter_.node(maker).op != "Mul") return std::nullopt;
    const Node& mul = rewriter_.node(maker);
    const size_t other = AreSame(mul.inputs[0], rounding.scale) ? 1 : 0;
    const Tensor* const scales = AreSame(mul.inputs[1 - other], rounding.scale) ? ConstantAt(mul, other) : nullptr;
    return scales == nullptr ? std::nullopt : std::optional(*scales);
  }

  // The node becomes one of real numbers, which may be rounded by position.
  void BecomeReal(int index, const char* op, std::vector<int> inputs, bool by_position) {
    Node& node = rewriter_.node(index);
    node.op = op;
    if (by_position) node.attributes[kByPosition] = int64_t{1};
    rewriter_.SetInputs(index, std::move(inputs));
  }

  // MatMulInteger(x, weight) -> perhaps Add(.., bias) -> Cast -> Mul(.., x_scale * weight_scale).
  Status BecomeMatMul(int index) {
    const Node& node = rewriter_.node(index);
    const auto rounding = RoundingOf(node.inputs[0]);
    const Tensor* zero_points;
    if (!rounding || ConstantAt(node, 1) == nullptr || !OptionalConstant(node, 3, zero_points)) return {};
    if (!AreSame(node.Input(2), rounding->zero_point)) return {};
    const int add = SoleReader(node.outputs[0], "Add");
    const int sums = add < 0 ? node.outputs[0] : rewriter_.node(add).outputs[0];
    const int cast = SoleReader(sums, "Cast");
    const int mul = cast < 0 ? -1 : SoleReader(rewriter_.node(cast).outputs[0], "Mul");
    if (mul < 0) return {};
    const std::vector<int>& factors = rewriter_.node(mul).inputs;
    const int factor = factors[0] == rewriter_.node(cast).outputs[0] ? factors[1] : factors[0];
    const auto scales = WeightScales(factor, *rounding);
    if (!scales) return {};
    if (add >= 0) {
      SWIZZLE_ASSIGN_OR_RETURN(const bool added, MakeBiasReal(add, node.outputs[0], factor));
      if (!added) return {};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[1], *scales, zero_points, 1));
    BecomeReal(index, "MatMul", {rounding->read, weight}, rounding->by_position);
    rewriter_.TakeOutput(add < 0 ? index : add, mul);
    rewriter_.Erase(cast);
    return {};
  }

  // An Add of whole numbers, of which `product` is one, to one of real numbers that are `scale` each. False where the
  // other is no constant, or the scale isn't.
  StatusOr<bool> MakeBiasReal(int add, int product, int scale) {
    const Node& node = rewriter_.node(add);
    const size_t other = node.inputs[0] == product ? 1 : 0;
    const Tensor* const bias = ConstantAt(node, other);
    if (bias == nullptr || bias->dtype != DType::kInt32 || !graph_.IsConstant(scale)) return false;
    const auto axis = static_cast<int64_t>(bias->shape.size()) - 1;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor real, DequantisedTensor(*bias, *graph_.values[scale].constant, nullptr, axis));
    rewriter_.SetInputs(add, {product, graph_.AddConstant(graph_.values[node.inputs[other]].name, std::move(real))});
    graph_.values[product].dtype = DType::kFloat32;
    return true;
  }

  // A product with a bias, if there is one.
  void BecomeLinear(int index, int x, int weight, int bias, bool by_position) {
    rewriter_.node(index).domain.clear();
    if (bias == kNoValue) {
      BecomeReal(index, "MatMul", {x, weight}, by_position);
    } else {
      BecomeReal(index, "Gemm", {x, weight, bias}, by_position);
    }
  }

  Status UnfuseDynamicMatMul(int index) {
    constexpr size_t kA = 0, kB = 1, kBScale = 2, kBZero = 3, kBias = 4;
    const Node& node = rewriter_.node(index);
    const Tensor* zero_points;
    const Tensor* const scales = ConstantAt(node, kBScale);
    if (ConstantAt(node, kB) == nullptr || scales == nullptr || !OptionalConstant(node, kBZero, zero_points)) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[kB], *scales, zero_points, 1));
    BecomeLinear(index, node.inputs[kA], weight, node.Input(kBias), true);
    return {};
  }

  Status UnfuseMatMul(int index) {
    constexpr size_t kA = 0, kB = 1, kAScale = 2, kBScale = 3, kAZero = 4, kBZero = 5, kBias = 6;
    const Node& node = rewriter_.node(index);
    const auto rounding = RoundingOf(node.inputs[kA]);
    const Tensor* zero_points;
    const Tensor* const scales = ConstantAt(node, kBScale);
    if (!rounding || ConstantAt(node, kB) == nullptr || scales == nullptr) return {};
    if (!OptionalConstant(node, kBZero, zero_points) || !AreSame(node.Input(kAScale), rounding->scale) ||
        !AreSame(node.Input(kAZero), rounding->zero_point)) {
      return {};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[kB], *scales, zero_points, 1));
    BecomeLinear(index, rounding->read, weight, node.Input(kBias), rounding->by_position);
    return {};
  }

  Status BecomeAttention(int index) {
    constexpr size_t kX = 0, kWeight = 1, kBias = 2, kXScale = 3, kWeightScale = 4, kMask = 5, kXZero = 6,
                     kWeightZero = 7, kPast = 8;
    const Node& node = rewriter_.node(index);
    const auto rounding = RoundingOf(node.inputs[kX]);
    const Tensor* zero_points;
    const Tensor* const scales = ConstantAt(node, kWeightScale);
    if (!rounding || ConstantAt(node, kWeight) == nullptr || scales == nullptr) return {};
    if (!OptionalConstant(node, kWeightZero, zero_points) || !AreSame(node.Input(kXScale), rounding->scale) ||
        !AreSame(node.Input(kXZero), rounding->zero_point)) {
      return {};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[kWeight], *scales, zero_points, 1));
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
      const Tensor *scales = ConstantAt(node, kScales + i), *zero_points;
      if (ConstantAt(node, kTables + i) == nullptr || scales == nullptr ||
          !OptionalConstant(node, kZeros + i, zero_points)) {
        return {};
      }
      SWIZZLE_ASSIGN_OR_RETURN(const int real, AddReal(node.inputs[kTables + i], *scales, zero_points, 0));
      inputs.push_back(real);
    }
    inputs.push_back(node.Input(kMask));
    BecomeReal(index, "EmbedLayerNormalization", std::move(inputs), false);
    return {};
  }

  Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Status ResolveWholeNumbers(Graph& graph) { return Resolver(graph).Run(); }

}  // namespace swizzle::sequences
