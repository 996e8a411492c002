// Activations, arithmetic, batch norm, softmax and padding.
#include <algorithm>
#include <cmath>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/passes/evaluate.h"

namespace swizzle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A bound of Clip, or `absent`.
StatusOr<float> Bound(const NodeRewrite& rewrite, size_t input, const char* what, float absent) {
  if (!rewrite.HasInput(input)) return absent;
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* tensor, rewrite.FloatConstant(input, what));
  if (tensor->elements() == 1 && !std::isnan(tensor->floats()[0])) return tensor->floats()[0];
  return InvalidArgument(Describe(rewrite.node()), ": its ", what, " is not one number");
}

int64_t ChannelsOf(const Shape& shape) { return shape.size() < 2 ? 1 : shape[1]; }

// One number per channel (dimension 1) from a constant that broadcasts to `shape` along all other dimensions.
StatusOr<std::vector<float>> ChannelVector(const NodeRewrite& rewrite, size_t input, const Shape& shape) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* tensor, rewrite.FloatConstant(input, "operand"));
  const int64_t channels = ChannelsOf(shape);
  const Shape& given = tensor->shape;
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

Status BecomeSum(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape a, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape b, rewrite.ActivationShape(1));
  const Node& node = rewrite.node();
  if (node.op != "Add") return Unimplemented(Describe(node), " of two activations is not supported; only Add is");
  if (a != b) {
    return Unimplemented(Describe(node), ": activations ", ShapeText(a), " and ", ShapeText(b),
                         " differ in shape; broadcasting between activations is not supported");
  }
  return rewrite.Become("Add", node.inputs, a);
}

// Scale and shift that `x op constant`, or `constant op x` where `constant_first`, amounts to.
void AsScaleAndShift(const std::string& op, bool constant_first, std::vector<float>& scale, std::vector<float>& shift) {
  for (size_t c = 0; c < scale.size(); ++c) {
    const float number = scale[c];
    const bool sum = op == "Add" || op == "Sub";
    scale[c] = sum ? (constant_first && op == "Sub" ? -1.0f : 1.0f) : op == "Mul" ? number : 1.0f / number;
    shift[c] = !sum ? 0.0f : op == "Sub" && !constant_first ? -number : number;
  }
}

// Below opset 13 Softmax runs over all dimensions from the axis on together.
bool RunsOverChannels(const Shape& shape, int64_t axis, int64_t opset) {
  if (axis != 1) return false;
  return opset >= 13 || std::all_of(shape.begin() + 2, shape.end(), [](int64_t dimension) { return dimension == 1; });
}

}  // namespace

Status CanonicaliseRelu(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  return rewrite.Become("Clamp", rewrite.node().inputs, shape, {{"low", 0.0f}, {"high", kInfinity}});
}

Status CanonicaliseClip(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const float low, Bound(rewrite, 1, "minimum", -kInfinity));
  SWIZZLE_ASSIGN_OR_RETURN(const float high, Bound(rewrite, 2, "maximum", kInfinity));
  if (low == -kInfinity && high == kInfinity) {
    rewrite.Vanish();
    return {};
  }
  // Where the bounds cross, ONNX takes the upper one.
  return rewrite.Become("Clamp", {rewrite.node().inputs[0]}, shape, {{"low", std::min(low, high)}, {"high", high}});
}

Status CanonicaliseArithmetic(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  const bool constant_first = rewrite.HasConstant(0);
  if (!constant_first && !rewrite.HasConstant(1)) return BecomeSum(rewrite);
  const size_t activation = constant_first ? 1 : 0;
  if (constant_first && node.op == "Div") return Unimplemented(Describe(node), " by an activation is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(activation));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> scale, ChannelVector(rewrite, 1 - activation, shape));
  std::vector<float> shift(scale.size());
  AsScaleAndShift(node.op, constant_first, scale, shift);
  return BecomeAffine(rewrite, node.inputs[activation], scale, shift);
}

Status CanonicaliseBatchNorm(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(node, "epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t training, IntAttribute(node, "training_mode", 0));
  const bool has_statistics = std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                                          [](int output) { return output != kNoValue; });
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
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", opset < 13 ? 1 : -1));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, static_cast<int64_t>(shape.size())));
  if (!RunsOverChannels(shape, axis, opset)) {
    return Unimplemented(Describe(node), " (opset ", opset, ") over axis ", axis, " of ", ShapeText(shape),
                         " is not supported; it must run over the channels, dimension 1, alone");
  }
  return rewrite.Become("Softmax", node.inputs, shape);
}

Status CanonicalisePad(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, StringAttribute(node, "mode", "constant"));
  if (mode != "constant") return Unimplemented(Describe(node), ": mode '", mode, "' is not supported, only 'constant'");
  const auto pads = rewrite.KnownElements(1);
  if (!pads || pads->dtype != DType::kInt64 || pads->DependsOnBatch()) {
    return Unimplemented(Describe(node), ": its pads are not constant integers");
  }
  if (pads->scalars.size() != 2 * shape.size()) {
    return InvalidArgument(Describe(node), " has ", pads->scalars.size(), " pads for ", ShapeText(shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const float value, Bound(rewrite, 2, "value", 0.0f));
  const auto pad = [&](size_t i) { return pads->scalars[i].whole; };
  Shape padded = shape;
  bool any = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    constexpr int64_t kMaxPad = 1 << 15;
    const int64_t before = pad(i), after = pad(shape.size() + i);
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
  std::vector<int64_t> spatial_pads = {pad(2), pad(3), pad(6), pad(7)};
  return rewrite.Become("Pad", {node.inputs[0]}, padded, {{"pads", std::move(spatial_pads)}, {"value", value}});
}

}  // namespace swizzle
