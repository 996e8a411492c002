// Conv, pools and means over the plane.
#include <array>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/passes/moves.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

std::map<std::string, Attribute> WindowAttributes(const Window& window) {
  Node node;
  SetWindow(node, window);
  return std::move(node.attributes);
}

Status CheckGroups(const Node& node, int64_t group, int64_t channels, const Shape& weight) {
  if (group < 1 || channels % group != 0 || weight[0] % group != 0 || weight[1] != channels / group) {
    return InvalidArgument(Describe(node), ": its weight ", ShapeText(weight), " does not fit ", channels,
                           " input channels in ", group, " groups");
  }
  return {};
}

// A window over a line, as one over a plane of height 1.
void WidenWindow(Node& node) {
  for (const char* name : {"kernel_shape", "strides", "dilations"}) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) continue;
    if (auto* const numbers = std::get_if<std::vector<int64_t>>(&found->second)) numbers->insert(numbers->begin(), 1);
  }
  const auto found = node.attributes.find("pads");
  if (found == node.attributes.end()) return;
  auto* const pads = std::get_if<std::vector<int64_t>>(&found->second);
  if (pads != nullptr && pads->size() == 2) *pads = {0, pads->front(), 0, pads->back()};
}

// A constant with the elements of `value`, a weight over a line, as one over a plane of height 1.
int WidenWeight(Graph& graph, int value) {
  Tensor tensor = *graph.values[value].constant;
  tensor.shape.insert(tensor.shape.begin() + 2, 1);
  const auto wholes = graph.values[value].wholes;
  const int widened = graph.AddConstant(graph.values[value].name + ".plane", std::move(tensor));
  graph.values[widened].wholes = wholes;
  return widened;
}

// Elements of 1-dimensional `axes` are the dimensions from 2 on, all of them.
bool IsPlane(const std::vector<int64_t>& axes, int64_t rank) {
  if (static_cast<int64_t>(axes.size()) != rank - 2) return false;
  for (int64_t i = 2; i < rank; ++i) {
    if (axes[i - 2] != i) return false;
  }
  return true;
}

// Whether the node is the mean, or sum, of the channels of planes, and keeps their dimension.
StatusOr<bool> ReducesChannels(const NodeRewrite& rewrite, const Shape& input) {
  const Node& node = rewrite.node();
  const auto given = rewrite.KnownElements(1);
  const bool adds = node.op == "ReduceMean" || node.op == "ReduceSum";
  if (!adds || input.size() != 4 || (rewrite.HasInput(1) && !given)) return false;
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOf(node, given ? &*given : nullptr, 4));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keeps, KeepsAxes(node));
  return keeps && axes == std::vector<int64_t>{1} && !rewrite.graph().values[node.inputs[0]].wholes;
}

// What of the plane is reduced.
struct ReducedPlane {
  bool height = true, width = true;
  bool keeps = true;  // the reduced dimensions stay, as 1
};

StatusOr<ReducedPlane> ReducedBy(const NodeRewrite& rewrite, const Shape& input) {
  const Node& node = rewrite.node();
  if (!node.op.starts_with("Reduce")) return ReducedPlane();
  const int64_t rank = static_cast<int64_t>(input.size());
  const auto input_axes = rewrite.KnownElements(1);
  if (rewrite.HasInput(1) && !input_axes) return Unimplemented(Describe(node), ": its axes are not constant");
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOf(node, input_axes ? &*input_axes : nullptr, rank));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keeps, KeepsAxes(node));
  if (axes && IsPlane(*axes, rank)) return ReducedPlane{.keeps = keeps};
  if (axes && axes->size() == 1 && axes->front() >= 2 && rank == 4 && keeps) {
    return ReducedPlane{axes->front() == 2, axes->front() == 3};
  }
  return Unimplemented(Describe(node), ": over ", ShapeText(input),
                       " only reductions of height and width are supported, and sums of channels");
}

// Zeros around the planes of the node's input: the value that has them.
StatusOr<int> PrecedeByPad(NodeRewrite& rewrite, const std::array<int64_t, 4>& pads, Shape shape) {
  const auto [top, left, bottom, right] = pads;
  Node pad{"Pad", {}, {}, {rewrite.node().inputs[0]}, {}, {}};
  pad.attributes = {{"pads", std::vector<int64_t>{top, left, bottom, right}}, {"value", 0.0f}};
  shape[2] += top + bottom;
  shape[3] += left + right;
  return rewrite.Precede(".padded", std::move(pad), kNoValue, std::move(shape));
}

// The sum of each window: its mean times how many positions it has.
Status BecomeScaledPool(NodeRewrite& rewrite, const Window& window, Shape output) {
  Node pool{"AveragePool", {}, {}, {rewrite.node().inputs[0]}, {}, WindowAttributes(window)};
  SWIZZLE_ASSIGN_OR_RETURN(const int mean, rewrite.Precede(".mean", std::move(pool), kNoValue, output));
  const std::vector<float> scale(static_cast<size_t>(output[1]), static_cast<float>(window.taps()));
  SWIZZLE_ASSIGN_OR_RETURN(const int scale_value, rewrite.AddFloats(".scale", scale));
  SWIZZLE_ASSIGN_OR_RETURN(const int shift_value, rewrite.AddFloats(".shift", std::vector<float>(scale.size())));
  return rewrite.Become("Affine", {mean, scale_value, shift_value}, std::move(output));
}

}  // namespace

Status CanonicaliseConv(NodeRewrite& rewrite) {
  Node node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(Shape input, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* weight, rewrite.FloatConstant(1, "weight"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t group, IntAttribute(node, "group", 1));
  const bool is_line = input.size() == 3;
  if ((!is_line && input.size() != 4) || weight->shape.size() != input.size()) {
    return Unimplemented(Describe(node), ": input ", ShapeText(input), " and weight ", ShapeText(weight->shape),
                         " are not those of a convolution over height and width, or length");
  }
  if (weight->elements() == 0) return InvalidArgument(Describe(node), ": its weight is empty");
  SWIZZLE_RETURN_IF_ERROR(CheckGroups(node, group, input[1], weight->shape));
  const int64_t channels = weight->shape[0];
  if (rewrite.HasInput(2)) SWIZZLE_RETURN_IF_ERROR(rewrite.FloatConstant(2, "bias", {channels}));
  if (is_line) {
    SWIZZLE_RETURN_IF_ERROR(rewrite.Spend(weight->elements()));
    WidenWindow(node);
    input.insert(input.begin() + 2, 1);
    node.inputs[1] = WidenWeight(rewrite.graph(), node.inputs[1]);
  }
  const Shape& shape = rewrite.graph().ShapeOf(node.inputs[1]);
  SWIZZLE_ASSIGN_OR_RETURN(const ResolvedWindow resolved, ResolveWindow(node, input, {shape[2], shape[3]}));
  auto attributes = WindowAttributes(resolved.window);
  attributes["group"] = group;
  Shape output = {input[0], channels, resolved.output_height, resolved.output_width};
  if (is_line) output.erase(output.begin() + 2);
  return rewrite.Become("Conv", node.inputs, std::move(output), std::move(attributes));
}

Status CanonicaliseConvTranspose(NodeRewrite& rewrite) {
  return Unimplemented(Describe(rewrite.node()), " (opset ", rewrite.graph().opset,
                       ") is supported with a known weight over height and width, explicit pads, and outputs that are "
                       "its input times its stride, without groups and dilations");
}

Status CanonicalisePool(NodeRewrite& rewrite) {
  Node node = rewrite.node();
  if (node.outputs.size() > 1 && node.outputs[1] != kNoValue) {
    return Unimplemented(Describe(node), ": its second output (indices) is not supported");
  }
  const bool is_max = node.op == "MaxPool";
  int input = node.inputs[0];
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, rewrite.ActivationShape(0));
  const bool is_line = shape.size() == 3;
  if (is_line) {
    WidenWindow(node);
    shape.insert(shape.begin() + 2, 1);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const ResolvedWindow resolved, ResolveWindow(node, shape, {}));
  if (resolved.PadsBefore()) {
    if (is_line) return Unimplemented(Describe(node), ": a pool over a line that counts its padding is not supported");
    SWIZZLE_ASSIGN_OR_RETURN(input, PrecedeByPad(rewrite, resolved.padded_before, shape));
  }
  Shape output = {shape[0], shape[1], resolved.output_height, resolved.output_width};
  if (is_line) output.erase(output.begin() + 2);
  return rewrite.Become(is_max ? "MaxPool" : "AveragePool", {input}, std::move(output),
                        WindowAttributes(resolved.window));
}

Status CanonicaliseGlobalPool(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape input, rewrite.ActivationShape(0));
  if (input.size() != 3 && input.size() != 4) {
    return Unimplemented(Describe(node), ": its input ", ShapeText(input), " is not [batch, channels, height, width]");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const bool of_channels, ReducesChannels(rewrite, input));
  const bool adds = node.op == "ReduceSum";
  if (of_channels) return BecomeChannelSum(rewrite, adds ? 1.0f : 1.0f / static_cast<float>(input[1]));
  SWIZZLE_ASSIGN_OR_RETURN(const ReducedPlane reduced, ReducedBy(rewrite, input));
  Shape output(input.begin(), input.begin() + 2);
  if (reduced.keeps) output.resize(input.size(), 1);
  if (!reduced.height) output[2] = input[2];
  if (!reduced.width) output.back() = input.back();
  constexpr int64_t kMaxPlaneExtent = 1 << 15;
  Window window;
  const int64_t height = input.size() == 4 ? input[2] : 1;
  if (height > kMaxPlaneExtent || input.back() > kMaxPlaneExtent) {
    return Unimplemented(Describe(node), ": its input ", ShapeText(input), " is larger than ", kMaxPlaneExtent);
  }
  window.kernel_h = reduced.height ? static_cast<int32_t>(height) : 1;
  window.kernel_w = reduced.width ? static_cast<int32_t>(input.back()) : 1;
  if (adds) return BecomeScaledPool(rewrite, window, std::move(output));
  const char* op = node.op == "GlobalMaxPool" || node.op == "ReduceMax" ? "MaxPool" : "AveragePool";
  return rewrite.Become(op, {node.inputs[0]}, std::move(output), WindowAttributes(window));
}

}  // namespace swizzle
