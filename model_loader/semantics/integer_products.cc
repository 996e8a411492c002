#include "model_loader/semantics/integer_products.h"

#include <algorithm>
#include <utility>

#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

// Scales as vectors, whatever they are multiplied with: [C, 1, 1] of a convolution's sums.
Tensor Flat(Tensor scales) {
  scales.shape = {scales.elements()};
  return scales;
}

// The only dimension that has more than one element; the last where none has.
int64_t LongestAxis(const Shape& shape) {
  const auto longest = std::ranges::max_element(shape);
  return longest == shape.end() || *longest <= 1 ? std::ssize(shape) - 1 : longest - shape.begin();
}

}  // namespace

std::optional<IntegerProducts::Rounding> IntegerProducts::RoundingOf(int wholes) const {
  const int maker = rewriter_.Producer(wholes);
  if (maker < 0) return std::nullopt;
  const Node& node = rewriter_.node(maker);
  if (node.op == "QuantizeLinear") return Rounding{wholes, node.inputs[1], node.Input(2), false};
  if (node.op != "DynamicQuantizeLinear" || wholes != node.outputs[0] || node.outputs.size() < 3) return std::nullopt;
  return Rounding{node.inputs[0], node.outputs[1], node.outputs[2], true};
}

bool IntegerProducts::AreSame(int a, int b) const {
  if (a == b) return true;
  if (a == kNoValue || b == kNoValue || !graph_.IsConstant(a) || !graph_.IsConstant(b)) return false;
  const Tensor &first = *graph_.values[a].constant, &second = *graph_.values[b].constant;
  return first.dtype == second.dtype && first.elements() == 1 && first.bytes == second.bytes;
}

const Tensor* IntegerProducts::ConstantAt(const Node& node, size_t i) const {
  const int value = node.Input(i);
  return graph_.IsConstant(value) ? &*graph_.values[value].constant : nullptr;
}

bool IntegerProducts::OptionalConstant(const Node& node, size_t i, const Tensor*& constant) const {
  constant = ConstantAt(node, i);
  return constant != nullptr || node.Input(i) == kNoValue;
}

StatusOr<int> IntegerProducts::AddReal(int given, const Tensor& scales, const Tensor* zero_points, int64_t axis) {
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

int IntegerProducts::SoleReader(int value, const char* op) const {
  const int reader = rewriter_.SoleReader(value);
  return reader >= 0 && rewriter_.node(reader).op == op ? reader : -1;
}

bool IntegerProducts::IsByteInput(int value) const {
  return value != kNoValue && graph_.values[value].dtype == DType::kUint8 &&
         std::ranges::find(graph_.inputs, value) != graph_.inputs.end();
}

// What the product of whole numbers, Cast, is multiplied by: x's scale times the weight's, these in `by`. Of a static
// scale the two may be one constant.
std::optional<Tensor> IntegerProducts::WeightScales(int by, const Rounding& rounding) const {
  if (rounding.scale == kNoValue) {
    const bool real = graph_.IsConstant(by) && graph_.values[by].dtype == DType::kFloat32;
    return real ? std::optional(Flat(*graph_.values[by].constant)) : std::nullopt;
  }
  const Tensor* const x = graph_.IsConstant(rounding.scale) ? &*graph_.values[rounding.scale].constant : nullptr;
  if (graph_.IsConstant(by)) {
    const bool real = x != nullptr && x->dtype == DType::kFloat32 && x->elements() == 1;
    Tensor scales = *graph_.values[by].constant;
    if (!real || scales.dtype != DType::kFloat32 || !(x->floats()[0] > 0.0f)) return std::nullopt;
    for (float& scale : scales.floats()) scale /= x->floats()[0];
    return Flat(std::move(scales));
  }
  const int maker = rewriter_.Producer(by);
  if (maker < 0 || rewriter_.node(maker).op != "Mul") return std::nullopt;
  const Node& mul = rewriter_.node(maker);
  const size_t other = AreSame(mul.inputs[0], rounding.scale) ? 1 : 0;
  const Tensor* const scales = AreSame(mul.inputs[1 - other], rounding.scale) ? ConstantAt(mul, other) : nullptr;
  return scales == nullptr ? std::nullopt : std::optional(Flat(*scales));
}

// Whether what an Add adds to the product is a constant of INT32, of as many channels as there are scales.
bool IntegerProducts::HasBias(const Node& add, int product, int64_t scales) const {
  const Tensor* const bias = ConstantAt(add, add.inputs[0] == product ? 1 : 0);
  if (bias == nullptr || bias->dtype != DType::kInt32) return false;
  return scales == 1 || (bias->elements() == scales && bias->shape[LongestAxis(bias->shape)] == scales);
}

std::optional<IntegerProducts::Product> IntegerProducts::Find(int index) const {
  const Node& node = rewriter_.node(index);
  Product product;
  auto rounding = RoundingOf(node.inputs[0]);
  if (!rounding && IsByteInput(node.inputs[0])) rounding = {node.inputs[0], kNoValue, node.Input(2), false};
  const Tensor* zero_points;
  if (!rounding || ConstantAt(node, 1) == nullptr || !OptionalConstant(node, 3, zero_points)) return std::nullopt;
  product.rounding = *rounding;
  if (!AreSame(node.Input(2), rounding->zero_point)) return std::nullopt;
  product.add = SoleReader(node.outputs[0], "Add");
  const int sums = product.add < 0 ? node.outputs[0] : rewriter_.node(product.add).outputs[0];
  product.cast = SoleReader(sums, "Cast");
  product.mul = product.cast < 0 ? -1 : SoleReader(rewriter_.node(product.cast).outputs[0], "Mul");
  if (product.mul < 0) return std::nullopt;
  const std::vector<int>& factors = rewriter_.node(product.mul).inputs;
  product.factor = factors[0] == rewriter_.node(product.cast).outputs[0] ? factors[1] : factors[0];
  auto scales = WeightScales(product.factor, *rounding);
  if (!scales) return std::nullopt;
  product.weight_scales = *std::move(scales);
  if (product.add < 0) return product;
  const bool has_bias = HasBias(rewriter_.node(product.add), node.outputs[0], product.weight_scales.elements()) &&
                        graph_.IsConstant(product.factor);
  return has_bias ? std::optional(std::move(product)) : std::nullopt;
}

// An Add of whole numbers, of which `product` is one, to one of real numbers that are `scale` each.
Status IntegerProducts::MakeBiasReal(int add, int product, int scale) {
  const Node& node = rewriter_.node(add);
  const size_t other = node.inputs[0] == product ? 1 : 0;
  const Tensor& bias = *ConstantAt(node, other);
  const Tensor scales = Flat(*graph_.values[scale].constant);
  SWIZZLE_ASSIGN_OR_RETURN(Tensor real, DequantisedTensor(bias, scales, nullptr, LongestAxis(bias.shape)));
  rewriter_.SetInputs(add, {product, graph_.AddConstant(graph_.values[node.inputs[other]].name, std::move(real))});
  return {};
}

Status IntegerProducts::BecomeReal(int index, const Product& product, const char* op, int read, int64_t axis) {
  const Node& node = rewriter_.node(index);
  const int sums = node.outputs[0];
  SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddReal(node.inputs[1], product.weight_scales, ConstantAt(node, 3), axis));
  if (product.add >= 0) SWIZZLE_RETURN_IF_ERROR(MakeBiasReal(product.add, sums, product.factor));
  graph_.values[sums].dtype = DType::kFloat32;
  rewriter_.node(index).op = op;
  rewriter_.SetInputs(index, {read, weight});
  rewriter_.TakeOutput(product.add < 0 ? index : product.add, product.mul);
  rewriter_.Erase(product.cast);
  return {};
}

}  // namespace swizzle
