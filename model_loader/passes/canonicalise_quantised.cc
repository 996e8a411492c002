// Quantised operators. In a canonical graph all numbers are real: what quantises a value becomes a clamp to the range
// of its whole numbers, and the value remembers these (Value::wholes); what reads whole numbers as real ones vanishes.
#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

Status Named(const Node& node, const Status& status) { return Annotate(status, Describe(node)); }

// Input `i`, which has to be a constant; null where there is none.
StatusOr<const Tensor*> Constant(const NodeRewrite& rewrite, size_t i) {
  if (!rewrite.HasInput(i)) return nullptr;
  const auto& constant = rewrite.graph().values[rewrite.node().inputs[i]].constant;
  if (constant) return &*constant;
  return Unimplemented(Describe(rewrite.node()), ": its scale or zero point is not a constant");
}

// A scale and the zero point behind it.
struct Scaling {
  const Tensor* scales = nullptr;
  const Tensor* zero_points = nullptr;
};

StatusOr<Scaling> ScalingAt(const NodeRewrite& rewrite, size_t i) {
  Scaling scaling;
  SWIZZLE_ASSIGN_OR_RETURN(scaling.scales, Constant(rewrite, i));
  SWIZZLE_ASSIGN_OR_RETURN(scaling.zero_points, Constant(rewrite, i + 1));
  if (scaling.scales == nullptr) return InvalidArgument(Describe(rewrite.node()), " lacks a scale");
  return scaling;
}

// `dtype`: where there is no zero point that says it.
StatusOr<Quantisation> QuantisationAt(const NodeRewrite& rewrite, size_t i, DType dtype) {
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling scaling, ScalingAt(rewrite, i));
  const DType type = scaling.zero_points == nullptr ? dtype : scaling.zero_points->dtype;
  auto quantisation = QuantisationOf(*scaling.scales, scaling.zero_points, type);
  if (!quantisation.ok()) return Named(rewrite.node(), quantisation.status());
  return quantisation;
}

// Of an activation, which has one scale.
StatusOr<Quantisation> ActivationQuantisationAt(const NodeRewrite& rewrite, size_t i, DType dtype) {
  SWIZZLE_ASSIGN_OR_RETURN(Quantisation quantisation, QuantisationAt(rewrite, i, dtype));
  if (quantisation.per_tensor()) return quantisation;
  return Unimplemented(Describe(rewrite.node()), " quantises an activation by channels; only one scale is supported");
}

// The FP32 constant that whole constant input `i` stands for, whose scale is input `scale`.
StatusOr<int> AddDequantised(NodeRewrite& rewrite, size_t i, size_t scale, int64_t axis) {
  Graph& graph = rewrite.graph();
  const int given = rewrite.node().inputs[i];
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling scaling, ScalingAt(rewrite, scale));
  const Tensor& wholes = *graph.values[given].constant;
  auto reals = DequantisedTensor(wholes, *scaling.scales, scaling.zero_points, axis);
  if (!reals.ok()) return Named(rewrite.node(), reals.status());
  std::optional<WholeNumbers> numbers;
  if (wholes.dtype != DType::kInt32) {
    SWIZZLE_ASSIGN_OR_RETURN(Quantisation quantisation, QuantisationAt(rewrite, scale, wholes.dtype));
    const auto rank = static_cast<int64_t>(wholes.shape.size());
    numbers = WholeNumbers{std::move(quantisation), axis < 0 ? axis + rank : axis};
  }
  const int constant = graph.AddConstant(graph.values[given].name, *std::move(reals));
  graph.values[constant].wholes = std::move(numbers);
  return constant;
}

// Whole numbers that the node reads as input `i`, with its scale at `scale`: an activation has been quantised just so,
// a constant becomes the real numbers. The input to read instead.
StatusOr<int> RealInput(NodeRewrite& rewrite, size_t i, size_t scale, int64_t axis) {
  if (rewrite.HasConstant(i)) return AddDequantised(rewrite, i, scale, axis);
  const int given = rewrite.node().inputs[i];
  const Value& value = rewrite.graph().values[given];
  if (!value.wholes) {
    return Unimplemented(Describe(rewrite.node()), ": its input '", value.name, "' was not quantised by the model");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation,
                           ActivationQuantisationAt(rewrite, scale, value.wholes->quantisation.dtype));
  if (quantisation == value.wholes->quantisation) return given;
  return Unimplemented(Describe(rewrite.node()), ": its input '", value.name,
                       "' was quantised with another scale or zero point");
}

// The operators that give of whole numbers those that they give of real ones.
constexpr std::string_view kKeepWholes[] = {"Flatten", "Identity", "MaxPool",   "GlobalMaxPool",
                                            "Reshape", "Squeeze",  "Transpose", "Unsqueeze"};
constexpr std::string_view kReadWholes[] = {"DequantizeLinear",
                                            "QGemm",
                                            "QLinearAdd",
                                            "QLinearAveragePool",
                                            "QLinearConcat",
                                            "QLinearConv",
                                            "QLinearGlobalAveragePool",
                                            "QLinearLeakyRelu",
                                            "QLinearMatMul",
                                            "QLinearMul",
                                            "QLinearSigmoid",
                                            "QLinearSoftmax"};

bool OneOf(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Whether the reader of whole numbers gives others of the same scale: by itself, or a Pad, which says what it pads by.
// Without that it pads by the whole number 0, which only stands for 0 where it is the zero point.
bool IsOfSameScale(const Node& reader, const Quantisation& quantisation) {
  if (reader.outputs[0] == kNoValue) return false;
  if (reader.op == "Pad") return reader.Input(2) != kNoValue || quantisation.Of(0).zero_point == 0;
  return OneOf(kKeepWholes, reader.op);
}

// That whatever reads the whole numbers of the node knows their scale.
Status CheckReaders(const NodeRewrite& rewrite, const Quantisation& quantisation) {
  std::vector<int> values = {rewrite.node().outputs[0]};
  while (!values.empty()) {
    const int value = values.back();
    values.pop_back();
    if (rewrite.IsGraphOutput(value)) {
      return Unimplemented(Describe(rewrite.node()), ": its whole numbers are an output of the graph");
    }
    for (const Node* reader : rewrite.ReadersOf(value)) {
      if (OneOf(kReadWholes, reader->op)) continue;
      if (!IsOfSameScale(*reader, quantisation)) {
        return Unimplemented(Describe(*reader), " reads whole numbers, which is not supported");
      }
      values.push_back(reader->outputs[0]);
    }
  }
  return {};
}

// The node, which `run` makes canonical, computes whole numbers of the scale at input `scale` of before.
template <typename Run>
Status BecomeQuantised(NodeRewrite& rewrite, size_t scale, DType dtype, const Run& run) {
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, ActivationQuantisationAt(rewrite, scale, dtype));
  SWIZZLE_RETURN_IF_ERROR(CheckReaders(rewrite, quantisation));
  SWIZZLE_RETURN_IF_ERROR(run());
  return rewrite.Quantise(quantisation);
}

// The attribute channels_last, which only says what is so anyway.
Status DropChannelsLast(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t channels_last, IntAttribute(rewrite.node(), "channels_last", 0));
  if (channels_last == 0) return {};
  return Unimplemented(Describe(rewrite.node()), ": channels_last is not supported");
}

// INT32 input `i` as real numbers: times alpha, x's scale and the weight's, one or one a channel.
StatusOr<int> RealBias(const NodeRewrite& rewrite, size_t i, float alpha, size_t x_scale, size_t weight_scale) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* given, Constant(rewrite, i));
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling x, ScalingAt(rewrite, x_scale));
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling weight, ScalingAt(rewrite, weight_scale));
  std::vector<float> scales(weight.scales->floats().begin(), weight.scales->floats().end());
  for (float& scale : scales) scale *= alpha * x.scales->floats()[0];
  const Tensor products = Tensor::Floats({static_cast<int64_t>(scales.size())}, scales);
  if (given->dtype != DType::kInt32) {
    return InvalidArgument(Describe(rewrite.node()), ": its bias is ", DTypeName(given->dtype), " instead of INT32");
  }
  auto reals = DequantisedTensor(*given, products, nullptr, static_cast<int64_t>(given->shape.size()) - 1);
  if (!reals.ok()) return Named(rewrite.node(), reals.status());
  return rewrite.graph().AddConstant(rewrite.node().name + ".bias", *std::move(reals));
}

}  // namespace

Status CanonicaliseQuantize(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", 1));
  if (rewrite.HasConstant(0)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor* reals, rewrite.FloatConstant(0, "input"));
    SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, QuantisationAt(rewrite, 1, DType::kUint8));
    auto wholes = QuantisedTensor(*reals, quantisation, axis);
    if (!wholes.ok()) return Named(node, wholes.status());
    rewrite.VanishInto(rewrite.graph().AddConstant(rewrite.graph().values[node.outputs[0]].name, *std::move(wholes)));
    return {};
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, ActivationQuantisationAt(rewrite, 1, DType::kUint8));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_RETURN_IF_ERROR(CheckReaders(rewrite, quantisation));
  const auto& before = rewrite.graph().values[node.inputs[0]].wholes;
  if (before && before->quantisation == quantisation) {
    rewrite.Vanish();
    return {};
  }
  SWIZZLE_RETURN_IF_ERROR(rewrite.Become("Clamp", {node.inputs[0]}, shape));
  return rewrite.Quantise(quantisation);
}

Status CanonicaliseDequantize(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(rewrite.node(), "axis", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int real, RealInput(rewrite, 0, 1, axis));
  rewrite.VanishInto(real);
  return {};
}

Status CanonicaliseQLinearConv(NodeRewrite& rewrite) {
  constexpr size_t kX = 0, kXScale = 1, kW = 3, kWScale = 4, kYScale = 6, kBias = 8;
  SWIZZLE_ASSIGN_OR_RETURN(const int x, RealInput(rewrite, kX, kXScale, 1));
  if (!rewrite.HasConstant(kW)) return Unimplemented(Describe(rewrite.node()), ": its weight is not a constant");
  SWIZZLE_ASSIGN_OR_RETURN(const int weight, RealInput(rewrite, kW, kWScale, 0));
  std::vector<int> inputs = {x, weight};
  if (rewrite.HasInput(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, RealBias(rewrite, kBias, 1.0f, kXScale, kWScale));
    inputs.push_back(bias);
  }
  return BecomeQuantised(rewrite, kYScale, DType::kUint8, [&] {
    rewrite.Respell("Conv", inputs);
    return CanonicaliseConv(rewrite);
  });
}

Status CanonicaliseQLinearMatMul(NodeRewrite& rewrite) {
  constexpr size_t kA = 0, kAScale = 1, kB = 3, kBScale = 4, kYScale = 6;
  SWIZZLE_ASSIGN_OR_RETURN(const int a, RealInput(rewrite, kA, kAScale, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int b, RealInput(rewrite, kB, kBScale, 1));
  return BecomeQuantised(rewrite, kYScale, DType::kUint8, [&] {
    rewrite.Respell("MatMul", {a, b});
    return CanonicaliseMatMul(rewrite);
  });
}

Status CanonicaliseQGemm(NodeRewrite& rewrite) {
  constexpr size_t kA = 0, kAScale = 1, kB = 3, kBScale = 4, kC = 6, kYScale = 7;
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(node, "transB", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(node, "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int a, RealInput(rewrite, kA, kAScale, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int b, RealInput(rewrite, kB, kBScale, trans_b != 0 ? 0 : 1));
  std::vector<int> inputs = {a, b};
  if (rewrite.HasInput(kC)) {
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, RealBias(rewrite, kC, alpha, kAScale, kBScale));
    inputs.push_back(bias);
  }
  const auto become = [&] {
    rewrite.Respell("Gemm", inputs);
    return CanonicaliseGemm(rewrite);
  };
  return rewrite.HasInput(kYScale) ? BecomeQuantised(rewrite, kYScale, DType::kUint8, become) : become();
}

Status CanonicaliseQLinearBinary(NodeRewrite& rewrite) {
  constexpr size_t kA = 0, kAScale = 1, kB = 3, kBScale = 4, kYScale = 6;
  SWIZZLE_ASSIGN_OR_RETURN(const int a, RealInput(rewrite, kA, kAScale, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int b, RealInput(rewrite, kB, kBScale, 1));
  return BecomeQuantised(rewrite, kYScale, DType::kUint8, [&] {
    rewrite.Respell(rewrite.node().op == "QLinearAdd" ? "Add" : "Mul", {a, b});
    return CanonicaliseArithmetic(rewrite);
  });
}

Status CanonicaliseQLinearUnary(NodeRewrite& rewrite) {
  constexpr std::pair<std::string_view, std::pair<const char*, Status (*)(NodeRewrite&)>> kUnary[] = {
      {"QLinearAveragePool", {"AveragePool", CanonicalisePool}},
      {"QLinearGlobalAveragePool", {"GlobalAveragePool", CanonicaliseGlobalPool}},
      {"QLinearLeakyRelu", {"LeakyRelu", CanonicaliseLeakyRelu}},
      {"QLinearSigmoid", {"Sigmoid", CanonicaliseSigmoid}},
  };
  constexpr size_t kX = 0, kXScale = 1, kYScale = 3;
  SWIZZLE_RETURN_IF_ERROR(DropChannelsLast(rewrite));
  SWIZZLE_ASSIGN_OR_RETURN(const int x, RealInput(rewrite, kX, kXScale, 1));
  const auto* const found =
      std::ranges::find(kUnary, std::string_view(rewrite.node().op), [](auto& u) { return u.first; });
  SWIZZLE_CHECK(found != std::end(kUnary));
  return BecomeQuantised(rewrite, kYScale, DType::kUint8, [&] {
    rewrite.Respell(found->second.first, {x});
    return found->second.second(rewrite);
  });
}

// Operands of other scales are rounded to the output's first: what is joined is of one.
Status CanonicaliseQLinearConcat(NodeRewrite& rewrite) {
  constexpr size_t kYScale = 0, kFirst = 2, kOfOperand = 3;
  SWIZZLE_ASSIGN_OR_RETURN(const Quantisation quantisation, ActivationQuantisationAt(rewrite, kYScale, DType::kUint8));
  SWIZZLE_RETURN_IF_ERROR(CheckReaders(rewrite, quantisation));
  Graph& graph = rewrite.graph();
  std::vector<int> operands;
  for (size_t i = kFirst; i < rewrite.node().inputs.size(); i += kOfOperand) {
    SWIZZLE_ASSIGN_OR_RETURN(int operand, RealInput(rewrite, i, i + 1, 1));
    const auto& wholes = graph.values[operand].wholes;
    if (wholes && wholes->quantisation != quantisation && graph.values[operand].shape) {
      Node rounding{"Clamp", "", "", {operand}, {}, {}};
      const RealRange range = RangeOf(quantisation.Of(0));
      SetBounds(rounding, range.low, range.high);
      const Shape shape = graph.ShapeOf(operand);
      SWIZZLE_ASSIGN_OR_RETURN(operand, rewrite.Precede(Concat(".operand", i), std::move(rounding), kNoValue, shape));
      graph.values[operand].wholes = WholeNumbers{quantisation};
    }
    operands.push_back(operand);
  }
  rewrite.Respell("Concat", std::move(operands));
  return CanonicaliseConcat(rewrite);
}

// A softmax of real numbers, and what rounds it.
Status CanonicaliseQLinearSoftmax(NodeRewrite& rewrite) {
  constexpr size_t kX = 0, kXScale = 1, kYScale = 3;
  constexpr int64_t kOfOneAxis = 13;  // the opset from which a softmax is over one axis alone
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t opset, IntAttribute(rewrite.node(), "opset", kOfOneAxis));
  if ((opset < kOfOneAxis) != (rewrite.graph().opset < kOfOneAxis)) {
    return Unimplemented(Describe(rewrite.node()), ": opset ", opset, " within opset ", rewrite.graph().opset);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int x, RealInput(rewrite, kX, kXScale, 1));
  return BecomeQuantised(rewrite, kYScale, DType::kUint8, [&]() -> Status {
    rewrite.Respell("Softmax", {x});
    SWIZZLE_RETURN_IF_ERROR(CanonicaliseSoftmax(rewrite));
    const Shape shape = rewrite.graph().ShapeOf(rewrite.node().outputs[0]);
    SWIZZLE_ASSIGN_OR_RETURN(const int real, rewrite.Precede(".real", Node(rewrite.node()), kNoValue, shape));
    return rewrite.Become("Clamp", {real}, shape);
  });
}

StatusOr<std::optional<float>> WholePadding(const NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  const auto& from = rewrite.graph().values[node.inputs[0]].wholes;
  if (!from || !rewrite.HasConstant(2)) return std::nullopt;
  const Tensor& given = *rewrite.graph().values[node.inputs[2]].constant;
  if (given.dtype != DType::kInt8 && given.dtype != DType::kUint8) return std::nullopt;
  if (given.dtype != from->quantisation.dtype || given.elements() != 1) {
    return InvalidArgument(Describe(node), ": its value is ", DTypeName(given.dtype), ShapeText(given.shape),
                           ", its input ", DTypeName(from->quantisation.dtype));
  }
  const Quantised wholes = from->quantisation.Of(0);
  const auto byte = static_cast<uint8_t>(given.bytes[0]);
  const int32_t whole = given.dtype == DType::kInt8 ? static_cast<int8_t>(byte) : byte;
  return wholes.scale * static_cast<float>(whole - wholes.zero_point);
}

void KeepWholes(Graph& graph, std::string_view op, const Node& canonical) {
  if (canonical.inputs.empty() || canonical.inputs[0] == kNoValue) return;
  const auto& from = graph.values[canonical.inputs[0]].wholes;
  std::optional<WholeNumbers>& to = graph.values[canonical.outputs[0]].wholes;
  if (!from || to || !from->quantisation.per_tensor()) return;
  const Quantised wholes = from->quantisation.Of(0);
  const Epilogue bounds = EpilogueOf(canonical);
  const bool clamp = Is(canonical, "Clamp") && ClampKeepsWholes(wholes, bounds.low, bounds.high);
  const bool pad = Is(canonical, "Pad") && IsWhole(wholes, std::get<float>(canonical.attributes.at("value")));
  if (clamp || pad || OneOf(kKeepWholes, op)) to = from;
}

}  // namespace swizzle
