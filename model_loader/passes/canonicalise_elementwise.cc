// Arithmetic, batch norm, softmax and padding.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/passes/moves.h"
#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/functions.h"
#include "model_loader/semantics/strides.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle {
namespace {

int64_t ChannelsOf(const Shape& shape) { return shape.size() < 2 ? 1 : shape[1]; }

// Below opset 7 the second operand's dimensions stand at the attribute axis of the first's: its shape with the ones
// behind it that put it there.
StatusOr<Shape> AlignedShape(const NodeRewrite& rewrite, size_t input, Shape given, const Shape& first) {
  const Node& node = rewrite.node();
  if (node.attributes.count("axis") == 0) return given;
  const int64_t rank = static_cast<int64_t>(first.size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, rank));
  if (input != 1) {
    return Unimplemented(Describe(node), ": its first operand ", ShapeText(given), " is put at axis ", axis, " of ",
                         ShapeText(first));
  }
  auto aligned = ShapeAtAxis(std::move(given), axis, rank);
  if (!aligned.ok()) return Unimplemented(Describe(node), ": ", std::string(aligned.status().message()));
  return aligned;
}

// One number per channel (dimension 1) from a constant that broadcasts to `shape` along all other dimensions.
StatusOr<std::vector<float>> ChannelVector(const NodeRewrite& rewrite, size_t input, const Shape& shape) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* tensor, rewrite.FloatConstant(input, "operand"));
  const int64_t channels = ChannelsOf(shape);
  SWIZZLE_ASSIGN_OR_RETURN(const Shape given, AlignedShape(rewrite, input, tensor->shape, shape));
  bool per_channel = given.size() <= shape.size();
  for (size_t i = 0; per_channel && i < given.size(); ++i) {
    const bool channel_axis = shape.size() - given.size() + i == 1;
    per_channel = given[i] == 1 || (channel_axis && given[i] == channels);
  }
  constexpr int64_t kMaxChannels = int64_t{1} << 24;
  if (!per_channel || channels > kMaxChannels) {
    return Unimplemented(Describe(rewrite.node()), ": its constant ", ShapeText(given),
                         " is neither a scalar nor one number per channel of ", ShapeText(shape));
  }
  std::vector<float> numbers(channels);
  for (int64_t c = 0; c < channels; ++c) numbers[c] = tensor->floats()[tensor->elements() == 1 ? 0 : c];
  return numbers;
}

// y = x * scale + shift, per channel.
Status BecomeAffine(NodeRewrite& rewrite, int activation, const std::vector<float>& scale,
                    const std::vector<float>& shift) {
  const auto finite = [](float number) { return std::isfinite(number); };
  if (!std::all_of(scale.begin(), scale.end(), finite) || !std::all_of(shift.begin(), shift.end(), finite)) {
    return InvalidArgument(Describe(rewrite.node()),
                           ": a constant it scales or shifts by is not finite, or it divides by 0");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int scale_value, rewrite.AddFloats(".scale", scale));
  SWIZZLE_ASSIGN_OR_RETURN(const int shift_value, rewrite.AddFloats(".shift", shift));
  const Shape shape = rewrite.graph().ShapeOf(activation);
  return rewrite.Become("Affine", {activation, scale_value, shift_value}, shape);
}

// -x.
StatusOr<int> PrecedeNegation(NodeRewrite& rewrite, int value, const Shape& shape) {
  const std::vector<float> scale(static_cast<size_t>(ChannelsOf(shape)), -1.0f), shift(scale.size());
  SWIZZLE_ASSIGN_OR_RETURN(const int scale_value, rewrite.AddFloats(".scale", scale));
  SWIZZLE_ASSIGN_OR_RETURN(const int shift_value, rewrite.AddFloats(".shift", shift));
  Node negated{"Affine", {}, {}, {value, scale_value, shift_value}, {}, {}};
  return rewrite.Precede(".negated", std::move(negated), kNoValue, shape);
}

// Whether `factors` is one number per channel and image of `shape`: [N,C,1,1] of [N,C,H,W].
bool IsPerChannel(const Shape& factors, const Shape& shape) {
  return factors.size() == shape.size() && shape.size() > 2 &&
         std::equal(factors.begin(), factors.begin() + 2, shape.begin()) &&
         std::all_of(factors.begin() + 2, factors.end(), [](int64_t dimension) { return dimension == 1; });
}

// Whether `from`, [N,C,H,W], becomes `to` where its dimensions of 1, but for the batch, are repeated.
bool BroadcastsTo(const Shape& from, const Shape& to) {
  if (from.size() != 4 || to.size() != 4 || from[0] != to[0]) return false;
  return std::ranges::equal(from, to, [](int64_t a, int64_t b) { return a == b || a == 1; });
}

// Add, Sub or Mul of two activations.
Status BecomeBinary(NodeRewrite& rewrite) {
  const Node node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape a, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(Shape b, rewrite.ActivationShape(1));
  SWIZZLE_ASSIGN_OR_RETURN(b, AlignedShape(rewrite, 1, std::move(b), a));
  if (node.op != "Add" && node.op != "Mul" && node.op != "Sub") {
    return Unimplemented(Describe(node), " (opset ", rewrite.graph().opset,
                         ") of two activations is not supported; only Add, Sub and Mul are");
  }
  if (node.op == "Mul" && a != b) {
    if (IsPerChannel(b, a)) return rewrite.Become("Scale", node.inputs, a);
    if (IsPerChannel(a, b)) return rewrite.Become("Scale", {node.inputs[1], node.inputs[0]}, b);
  }
  const bool repeats_first = BroadcastsTo(a, b);
  if (a != b && !repeats_first && !BroadcastsTo(b, a)) {
    return Unimplemented(Describe(node), ": activations ", ShapeText(a), " and ", ShapeText(b),
                         " differ in shape; between activations only dimensions of planes [batch, channels, height, "
                         "width] broadcast, one operand's to the other's");
  }
  std::vector<int> operands(node.inputs.begin(), node.inputs.begin() + 2);
  if (node.op == "Sub") {
    SWIZZLE_ASSIGN_OR_RETURN(operands[1], PrecedeNegation(rewrite, operands[1], b));
  }
  if (a != b) {
    int& repeated = operands[repeats_first ? 0 : 1];
    SWIZZLE_ASSIGN_OR_RETURN(repeated, PrecedeBroadcast(rewrite, repeated, repeats_first ? b : a));
  }
  return rewrite.Become(node.op == "Mul" ? "Multiply" : "Add", std::move(operands), repeats_first ? b : a);
}

// Whether these axes are the channels, but for dimensions of 1.
bool AreChannels(const std::vector<int64_t>& axes, const Shape& shape) {
  return axes[0] == 1 && std::all_of(axes.begin() + 1, axes.end(), [&](int64_t axis) { return shape[axis] == 1; });
}

// Padding before each dimension, then after each: the attribute pads (below opset 11), or input 1, of all dimensions or
// of the axes of input 3 (from opset 18 on).
StatusOr<std::vector<int64_t>> PadsOf(const NodeRewrite& rewrite, size_t rank) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, IntsAttribute(node, "pads", {}));
  if (rewrite.HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(pads, rewrite.KnownIntegers(1, "pads"));
  }
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (rewrite.HasInput(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, rewrite.KnownIntegers(3, "axes"));
  }
  auto all = PadsOfAll(pads, axes, static_cast<int64_t>(rank));
  if (!all.ok()) return Annotate(all.status(), Describe(node));
  return all;
}

}  // namespace

Status CanonicaliseArithmetic(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  const bool constant_first = rewrite.HasConstant(0);
  if (!constant_first && !rewrite.HasConstant(1)) return BecomeBinary(rewrite);
  const size_t activation = constant_first ? 1 : 0;
  if (constant_first && node.op == "Div") return Unimplemented(Describe(node), " by an activation is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(activation));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> scale, ChannelVector(rewrite, 1 - activation, shape));
  std::vector<float> shift(scale.size());
  for (size_t c = 0; c < scale.size(); ++c) {
    const ScaleAndShift channel = AsScaleAndShift(node.op, constant_first, scale[c]);
    scale[c] = channel.scale;
    shift[c] = channel.shift;
  }
  return BecomeAffine(rewrite, node.inputs[activation], scale, shift);
}

Status CanonicaliseNeg(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  const std::vector<float> scale(static_cast<size_t>(ChannelsOf(shape)), -1.0f), shift(scale.size());
  return BecomeAffine(rewrite, rewrite.node().inputs[0], scale, shift);
}

Status CanonicalisePow(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const exponent, rewrite.FloatConstant(1, "exponent"));
  if (exponent->elements() != 1 || exponent->shape.size() > shape.size() || exponent->floats()[0] != 2.0f) {
    return Unimplemented(Describe(node), " is supported for squares only");
  }
  return rewrite.Become("Multiply", {node.inputs[0], node.inputs[0]}, shape);
}

Status CanonicaliseSum(NodeRewrite& rewrite) {
  const Node node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const Shape other, rewrite.ActivationShape(i));
    if (other != shape) {
      return Unimplemented(Describe(node), " of ", ShapeText(shape), " and ", ShapeText(other), " is not supported");
    }
  }
  if (node.inputs.size() == 1) {
    rewrite.Vanish();
    return {};
  }
  int sum = node.inputs[0];
  for (size_t i = 1; i + 1 < node.inputs.size(); ++i) {
    Node part{"Add", {}, {}, {sum, node.inputs[i]}, {}, {}};
    SWIZZLE_ASSIGN_OR_RETURN(sum, rewrite.Precede(Concat(".sum", i), std::move(part), kNoValue, shape));
  }
  return rewrite.Become("Add", {sum, node.inputs.back()}, shape);
}

// One slope is a function; of slopes by channel, what is above zero and what is below go ways of their own.
Status CanonicalisePRelu(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> slopes, ChannelVector(rewrite, 1, shape));
  if (!std::ranges::all_of(slopes, [](float slope) { return std::isfinite(slope); })) {
    return InvalidArgument(Describe(rewrite.node()), ": a slope is not finite");
  }
  const int x = rewrite.node().inputs[0];
  if (std::ranges::all_of(slopes, [&](float slope) { return slope == slopes[0]; })) {
    return rewrite.Become("Function", {x}, shape, FunctionAttributes({FunctionKind::kLeakyRelu, slopes[0], 0.0f}));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  SWIZZLE_ASSIGN_OR_RETURN(const int scale, rewrite.AddFloats(".slopes", slopes));
  SWIZZLE_ASSIGN_OR_RETURN(const int shift, rewrite.AddFloats(".shift", std::vector<float>(slopes.size())));
  Node above{"Clamp", {}, {}, {x}, {}, {{"low", 0.0f}, {"high", kInfinity}}};
  SWIZZLE_ASSIGN_OR_RETURN(const int positive, rewrite.Precede(".above", std::move(above), kNoValue, shape));
  Node below{"Clamp", {}, {}, {x}, {}, {{"low", -kInfinity}, {"high", 0.0f}}};
  SWIZZLE_ASSIGN_OR_RETURN(const int negative, rewrite.Precede(".below", std::move(below), kNoValue, shape));
  Node sloped{"Affine", {}, {}, {negative, scale, shift}, {}, {}};
  SWIZZLE_ASSIGN_OR_RETURN(const int part, rewrite.Precede(".sloped", std::move(sloped), kNoValue, shape));
  return rewrite.Become("Add", {positive, part}, shape);
}

Status CanonicaliseBatchNorm(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(node, "epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t training, IntAttribute(node, "training_mode", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t spatial, IntAttribute(node, "spatial", 1));
  if (spatial != 1) {
    return Unimplemented(Describe(node), ": spatial ", spatial, " is not supported; only one number per channel is");
  }
  const bool has_statistics =
      std::any_of(node.outputs.begin() + 1, node.outputs.end(), [](int output) { return output != kNoValue; });
  if (training != 0 || has_statistics) {
    return Unimplemented(Describe(node), " is in training mode; export the model for inference");
  }
  const int64_t channels = ChannelsOf(shape);
  const Tensor* inputs[4];
  const char* const names[] = {"scale", "shift", "mean", "variance"};
  for (size_t i = 0; i < 4; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(inputs[i], rewrite.FloatConstant(i + 1, names[i], {channels}));
  }
  std::vector<float> scale(channels), shift(channels);
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = inputs[0]->floats()[c] / std::sqrt(double{inputs[3]->floats()[c]} + epsilon);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(inputs[1]->floats()[c] - inputs[2]->floats()[c] * factor);
  }
  return BecomeAffine(rewrite, node.inputs[0], scale, shift);
}

Status CanonicaliseSoftmax(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  const int64_t opset = rewrite.graph().opset;
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, SoftmaxAxes(node, opset, static_cast<int64_t>(shape.size())));
  if (!AreChannels(axes, shape)) {
    return Unimplemented(Describe(node), " (opset ", opset, ") over axis ", axes[0], " of ", ShapeText(shape),
                         " is not supported; it must run over the channels, dimension 1, alone");
  }
  return rewrite.Become("Softmax", node.inputs, shape);
}

Status CanonicalisePad(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, StringAttribute(node, "mode", "constant"));
  if (mode != "constant") return Unimplemented(Describe(node), ": mode '", mode, "' is not supported, only 'constant'");
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, PadsOf(rewrite, shape.size()));
  SWIZZLE_ASSIGN_OR_RETURN(float value, FloatAttribute(node, "value", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<float> whole, WholePadding(rewrite));
  if (whole) {
    value = *whole;
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(value, rewrite.NumberOr(2, "value", value));
  }
  Shape padded = shape;
  bool any = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    constexpr int64_t kMaxPad = 1 << 15;
    const int64_t before = pads[i], after = pads[shape.size() + i];
    const bool spatial = shape.size() == 4 && i >= 2;
    if (before < 0 || after < 0 || before > kMaxPad || after > kMaxPad || (!spatial && before + after > 0)) {
      return Unimplemented(Describe(node), ": only padding of height and width, by 0 to ", kMaxPad, ", is supported");
    }
    any = any || before + after > 0;
    if (spatial) padded[i] += before + after;
  }
  if (!any) {
    rewrite.Vanish();
    return {};
  }
  std::vector<int64_t> spatial_pads = {pads[2], pads[3], pads[6], pads[7]};
  return rewrite.Become("Pad", {node.inputs[0]}, padded, {{"pads", std::move(spatial_pads)}, {"value", value}});
}

}  // namespace swizzle
