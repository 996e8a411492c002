#include "model_loader/semantics/integer_products.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// The only dimension that has more than one element; the last where none has.
int64_t LongestAxis(const Shape& shape) {
  const auto longest = std::ranges::max_element(shape);
  return longest == shape.end() || *longest <= 1 ? std::ssize(shape) - 1 : longest - shape.begin();
}

// Whether all elements are along one dimension, the `from_end`-th from the end, as many as there are channels.
bool IsByChannel(const Shape& shape, int64_t channels, int64_t from_end) {
  const int64_t longest = LongestAxis(shape);
  const auto elements = ElementCount(shape);
  return longest >= 0 && shape[static_cast<size_t>(longest)] == channels && std::ssize(shape) - longest == from_end &&
         elements.ok() && *elements == channels;
}

// Real numbers: one, or one for each of `channels`.
std::optional<std::vector<float>> ScalesIn(const Tensor& tensor, int64_t channels, int64_t from_end) {
  if (tensor.dtype != DType::kFloat32) return std::nullopt;
  if (tensor.elements() != 1 && !IsByChannel(tensor.shape, channels, from_end)) return std::nullopt;
  const auto floats = tensor.floats();
  return std::vector<float>(floats.begin(), floats.end());
}

bool IsCastToReal(const Node& cast) {
  const auto type = CastType(cast);
  return type.ok() && *type == DType::kFloat32;
}

}  // namespace

std::optional<IntegerProducts::Rounding> IntegerProducts::RoundingOf(int wholes) const {
  const int maker = rewriter_.Producer(wholes);
  if (maker < 0) return std::nullopt;
  const Node& node = rewriter_.node(maker);
  if (node.op == "QuantizeLinear") {
    const int scale = node.inputs[1];
    if (graph_.IsConstant(scale) && graph_.values[scale].constant->elements() != 1) return std::nullopt;
    return Rounding{wholes, scale, node.Input(2), false};
  }
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
  return reader >= 0 && rewriter_.node(reader).domain.empty() && rewriter_.node(reader).op == op ? reader : -1;
}

bool IntegerProducts::IsByteInput(int value) const {
  return value != kNoValue && graph_.values[value].dtype == DType::kUint8 &&
         std::ranges::find(graph_.inputs, value) != graph_.inputs.end();
}

bool IntegerProducts::IsNumber(int value) const {
  return graph_.IsConstant(value) && graph_.values[value].constant->elements() == 1 &&
         graph_.values[value].constant->dtype == DType::kFloat32;
}

// Whether a factor is the product of these two scales: computed of them, or known as they are.
bool IntegerProducts::MultipliesBy(int factor, int a, int b) const {
  if (const int maker = rewriter_.Producer(factor); maker >= 0) {
    const Node& mul = rewriter_.node(maker);
    if (mul.op != "Mul") return false;
    return (AreSame(mul.inputs[0], a) && AreSame(mul.inputs[1], b)) ||
           (AreSame(mul.inputs[0], b) && AreSame(mul.inputs[1], a));
  }
  if (!IsNumber(factor) || !IsNumber(a) || !IsNumber(b)) return false;
  const auto number = [this](int value) { return graph_.values[value].constant->floats()[0]; };
  const float product = number(a) * number(b);
  return std::abs(number(factor) - product) <= 1e-5f * product;
}

// What the product of whole numbers, Cast, is multiplied by: x's scale times the weight's, these in `by`. Of a static
// scale the two may be one constant.
std::optional<std::vector<float>> IntegerProducts::WeightScales(int by, const Rounding& rounding, int64_t channels,
                                                                int64_t from_end) const {
  if (graph_.IsConstant(by)) {
    auto scales = ScalesIn(*graph_.values[by].constant, channels, from_end);
    if (!scales || rounding.scale == kNoValue) return scales;
    if (!IsNumber(rounding.scale)) return std::nullopt;
    const float of_input = graph_.values[rounding.scale].constant->floats()[0];
    if (!(of_input > 0.0f)) return std::nullopt;
    for (float& scale : *scales) scale /= of_input;
    return scales;
  }
  const int maker = rewriter_.Producer(by);
  if (maker < 0 || rewriter_.node(maker).op != "Mul" || rounding.scale == kNoValue) return std::nullopt;
  const Node& mul = rewriter_.node(maker);
  const size_t other = AreSame(mul.inputs[0], rounding.scale) ? 1 : 0;
  const Tensor* const scales = AreSame(mul.inputs[1 - other], rounding.scale) ? ConstantAt(mul, other) : nullptr;
  return scales == nullptr ? std::nullopt : ScalesIn(*scales, channels, from_end);
}

std::optional<IntegerProducts::Weight> IntegerProducts::WeightOf(int wholes, int zero_points, std::vector<float> scales,
                                                                 int64_t axis) const {
  const int64_t channels = graph_.ShapeOf(wholes)[static_cast<size_t>(axis)];
  const auto fits = [&](int64_t count) { return count == 1 || count == channels; };
  if (!fits(std::ssize(scales))) return std::nullopt;
  if (zero_points != kNoValue) {
    if (!graph_.IsConstant(zero_points)) return std::nullopt;
    const Tensor& zeros = *graph_.values[zero_points].constant;
    if (zeros.dtype != graph_.values[wholes].dtype || !fits(zeros.elements())) return std::nullopt;
  }
  return Weight{wholes, zero_points, std::move(scales), axis};
}

// Whether what an Add adds to the product is a constant of INT32, of as many channels as there are scales.
bool IntegerProducts::HasBias(const Node& add, int product, size_t scales, int64_t from_end) const {
  const Tensor* const bias = ConstantAt(add, add.inputs[0] == product ? 1 : 0);
  if (bias == nullptr || bias->dtype != DType::kInt32) return false;
  return scales == 1 || IsByChannel(bias->shape, static_cast<int64_t>(scales), from_end);
}

std::optional<IntegerProducts::Chain> IntegerProducts::ChainBehind(int index) const {
  Chain chain;
  const int sums = rewriter_.node(index).outputs[0];
  chain.add = SoleReader(sums, "Add");
  chain.cast = SoleReader(chain.add < 0 ? sums : rewriter_.node(chain.add).outputs[0], "Cast");
  if (chain.cast < 0 || !IsCastToReal(rewriter_.node(chain.cast))) return std::nullopt;
  const int real = rewriter_.node(chain.cast).outputs[0];
  chain.mul = SoleReader(real, "Mul");
  if (chain.mul < 0) return std::nullopt;
  const std::vector<int>& factors = rewriter_.node(chain.mul).inputs;
  chain.factor = factors[0] == real ? factors[1] : factors[0];
  return chain;
}

std::optional<IntegerProducts::Rounding> IntegerProducts::RoundingBefore(const Node& product) const {
  auto rounding = RoundingOf(product.inputs[0]);
  if (!rounding && IsByteInput(product.inputs[0])) rounding = {product.inputs[0], kNoValue, product.Input(2), false};
  return rounding && AreSame(product.Input(2), rounding->zero_point) ? rounding : std::nullopt;
}

bool IntegerProducts::Unround(int index) {
  const Node& node = rewriter_.node(index);
  if (node.outputs.empty()) return false;
  if (node.domain == kMicrosoft && node.op == "DynamicQuantizeMatMul") return UnfuseDynamicProduct(index);
  if (node.domain == kMicrosoft && node.op == "MatMulIntegerToFloat") return UnfuseProduct(index);
  return node.domain.empty() && (node.op == "MatMulInteger" || node.op == "ConvInteger") && UnroundChain(index);
}

bool IntegerProducts::UnroundChain(int index) {
  const Node& node = rewriter_.node(index);
  const auto chain = ChainBehind(index);
  if (!chain) return false;
  const bool is_conv = node.op == "ConvInteger";
  const Tensor* const given = ConstantAt(node, 1);
  if (given == nullptr) return !is_conv && chain->add < 0 && UnroundActivations(index, *chain);
  const auto rounding = RoundingBefore(node);
  const int64_t rank = std::ssize(given->shape);
  if (!rounding || rank < 2) return false;
  const int64_t axis = is_conv ? 0 : rank - 1;
  const int64_t from_end = is_conv ? rank - 1 : 1;  // of the channels in what is made
  auto scales = WeightScales(chain->factor, *rounding, given->shape[static_cast<size_t>(axis)], from_end);
  if (!scales) return false;
  const bool has_bias = chain->add >= 0;
  if (has_bias && (!graph_.IsConstant(chain->factor) ||
                   !HasBias(rewriter_.node(chain->add), node.outputs[0], scales->size(), from_end))) {
    return false;
  }
  const auto weight = WeightOf(node.inputs[1], node.Input(3), *std::move(scales), axis);
  if (!weight) return false;
  const int read = RealInput(index, *rounding);
  const int real = RealWeight(index, *weight);
  if (has_bias) MakeBiasReal(chain->add, rewriter_.node(index).outputs[0], chain->factor);
  if (rounding->by_position && !is_conv) rewriter_.node(index).attributes[kByPosition] = int64_t{1};
  BecomeReal(index, *chain, is_conv ? "Conv" : "MatMul", {read, real});
  return true;
}

// Of two that are rounded alike: attention's, in models all of whose products are quantised.
bool IntegerProducts::UnroundActivations(int index, const Chain& chain) {
  const Node& node = rewriter_.node(index);
  const auto a = RoundingOf(node.inputs[0]), b = RoundingOf(node.inputs[1]);
  if (!a || !b || !MultipliesBy(chain.factor, a->scale, b->scale)) return false;
  if (!AreSame(node.Input(2), a->zero_point) || !AreSame(node.Input(3), b->zero_point)) return false;
  const int first = RealInput(index, *a);
  const int second = RealInput(index, *b);
  BecomeReal(index, chain, "MatMul", {first, second});
  return true;
}

bool IntegerProducts::UnfuseDynamicProduct(int index) {
  constexpr size_t kA = 0, kB = 1, kBScale = 2, kBZero = 3, kBias = 4;
  const Node& node = rewriter_.node(index);
  const Tensor *const given = ConstantAt(node, kB), *const scales = ConstantAt(node, kBScale);
  if (given == nullptr || scales == nullptr || given->shape.size() != 2) return false;
  auto by_channel = ScalesIn(*scales, given->shape[1], 1);
  if (!by_channel) return false;
  const auto weight = WeightOf(node.inputs[kB], node.Input(kBZero), *std::move(by_channel), 1);
  if (!weight) return false;
  BecomeLinear(index, node.inputs[kA], *weight, node.Input(kBias), true);
  return true;
}

bool IntegerProducts::UnfuseProduct(int index) {
  constexpr size_t kA = 0, kB = 1, kAScale = 2, kBScale = 3, kAZero = 4, kBZero = 5, kBias = 6;
  const Node& node = rewriter_.node(index);
  const auto rounding = RoundingOf(node.inputs[kA]);
  const Tensor *const given = ConstantAt(node, kB), *const scales = ConstantAt(node, kBScale);
  if (!rounding || given == nullptr || scales == nullptr || given->shape.size() != 2) return false;
  if (!AreSame(node.inputs[kAScale], rounding->scale) || !AreSame(node.Input(kAZero), rounding->zero_point)) {
    return false;
  }
  auto by_channel = ScalesIn(*scales, given->shape[1], 1);
  if (!by_channel) return false;
  const auto weight = WeightOf(node.inputs[kB], node.Input(kBZero), *std::move(by_channel), 1);
  if (!weight) return false;
  const int bias = node.Input(kBias);
  const int read = RealInput(index, *rounding);
  BecomeLinear(index, read, *weight, bias, rounding->by_position);
  return true;
}

void IntegerProducts::BecomeLinear(int index, int x, const Weight& weight, int bias, bool by_position) {
  const int real = RealWeight(index, weight);
  Node product{"MatMul", "", rewriter_.node(index).name, {x, real}, {}, {}};
  if (by_position) product.attributes[kByPosition] = int64_t{1};
  Node& node = rewriter_.node(index);
  node.domain.clear();
  if (bias == kNoValue) {
    node.op = product.op;
    node.attributes = std::move(product.attributes);
    rewriter_.SetInputs(index, std::move(product.inputs));
    return;
  }
  node.op = "Add";
  Value value;
  value.name = Concat(product.name, ".product");
  product.name = value.name;
  const int sums = graph_.AddValue(std::move(value));
  product.outputs = {sums};
  rewriter_.InsertBefore(index, std::move(product));
  rewriter_.SetInputs(index, {sums, bias});
}

// An Add of whole numbers, of which `product` is one, to one of real numbers that are `scale` each.
void IntegerProducts::MakeBiasReal(int add, int product, int scale) {
  const Node& node = rewriter_.node(add);
  const int bias = node.inputs[node.inputs[0] == product ? 1 : 0];
  Tensor scales = *graph_.values[scale].constant;
  const bool is_number = scales.elements() == 1;
  scales.shape = is_number ? Shape() : Shape{scales.elements()};
  const int flat = graph_.AddConstant(graph_.values[scale].name, std::move(scales));
  const auto axis = is_number ? std::nullopt : std::optional(LongestAxis(graph_.ShapeOf(bias)));
  const int real = Dequantise(add, bias, flat, kNoValue, axis);
  rewriter_.SetInputs(add, {product, real});
}

void IntegerProducts::BecomeReal(int index, const Chain& chain, const char* op, std::vector<int> inputs) {
  graph_.values[rewriter_.node(index).outputs[0]].dtype = DType::kFloat32;
  rewriter_.node(index).op = op;
  rewriter_.SetInputs(index, std::move(inputs));
  const int last = chain.add < 0 ? index : chain.add;
  rewriter_.TakeOutput(last, chain.mul);
  rewriter_.Erase(chain.cast);
}

int IntegerProducts::RealInput(int index, const Rounding& rounding) {
  if (rounding.by_position) return rounding.read;
  const float one = 1.0f;
  const int scale = rounding.scale == kNoValue
                        ? graph_.AddConstant(rewriter_.node(index).name + ".scale", Tensor::Floats({}, {&one, 1}))
                        : rounding.scale;
  return Dequantise(index, rounding.read, scale, rounding.zero_point, std::nullopt);
}

int IntegerProducts::RealWeight(int index, const Weight& weight) {
  const auto [made, is_new] =
      real_weights_.try_emplace({weight.wholes, weight.zero_points, weight.scales, weight.axis}, kNoValue);
  if (!is_new) return made->second;
  const std::string name = graph_.values[weight.wholes].name;
  std::vector<float> scales = weight.scales;
  int zero_point = weight.zero_points;
  const int64_t zeros = zero_point == kNoValue ? 1 : graph_.values[zero_point].constant->elements();
  if (zeros > std::ssize(scales)) scales.assign(static_cast<size_t>(zeros), scales[0]);
  const int64_t count = std::ssize(scales);
  const Shape shape = count == 1 ? Shape() : Shape{count};
  if (zero_point != kNoValue && graph_.ShapeOf(zero_point) != shape) {
    Tensor given = *graph_.values[zero_point].constant;
    given.shape = shape;
    given.bytes.resize(static_cast<size_t>(count), given.bytes[0]);  // bytes, one for all or one each
    zero_point = graph_.AddConstant(graph_.values[zero_point].name, std::move(given));
  }
  const int scale = graph_.AddConstant(name + ".scale", Tensor::Floats(shape, scales));
  const auto axis = count == 1 ? std::nullopt : std::optional(weight.axis);
  return made->second = Dequantise(index, weight.wholes, scale, zero_point, axis);
}

int IntegerProducts::Dequantise(int index, int wholes, int scale, int zero_point, std::optional<int64_t> axis) {
  Value value;
  value.name = graph_.values[wholes].name + ".real";
  Node node{"DequantizeLinear", "", value.name, {wholes, scale}, {}, {}};
  if (zero_point != kNoValue) node.inputs.push_back(zero_point);
  if (axis) node.attributes["axis"] = *axis;
  const int real = graph_.AddValue(std::move(value));
  node.outputs = {real};
  rewriter_.InsertBefore(index, std::move(node));
  return real;
}

}  // namespace swizzle
