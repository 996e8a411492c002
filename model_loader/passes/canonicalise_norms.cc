// Normalisation by what a row of the batch says itself: of each channel, of groups of channels, of each position.
#include <cmath>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

constexpr int64_t kMostNormalised = int64_t{1} << 22;  // elements that share a mean

// A canonical LayerNorm of the channels of `value`, whose output has its shape.
StatusOr<int> PrecedeLayerNorm(NodeRewrite& rewrite, int value, std::span<const float> scale,
                               std::span<const float> shift) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(rewrite.node(), "epsilon", 1e-5f));
  if (!(epsilon >= 0.0f) || !std::isfinite(epsilon)) {
    return InvalidArgument(Describe(rewrite.node()), ": its epsilon ", epsilon, " is negative or not finite");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int scales, rewrite.AddFloats(".scales", scale));
  SWIZZLE_ASSIGN_OR_RETURN(const int shifts, rewrite.AddFloats(".shifts", shift));
  Node norm{"LayerNorm", {}, {}, {value, scales, shifts}, {}, {{"epsilon", epsilon}}};
  return rewrite.Precede(".norm", std::move(norm), kNoValue, rewrite.graph().ShapeOf(value));
}

// One number for each channel: of each, or of each group.
StatusOr<std::vector<float>> ByChannel(const NodeRewrite& rewrite, size_t input, const char* what, int64_t channels,
                                       int64_t groups) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const tensor, rewrite.FloatConstant(input, what));
  const int64_t count = tensor->elements();
  if (tensor->shape.size() != 1 || (count != channels && count != groups)) {
    return InvalidArgument(Describe(rewrite.node()), ": its ", what, " ", ShapeText(tensor->shape), " is not one of ",
                           channels, " channels");
  }
  std::vector<float> numbers(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) numbers[c] = tensor->floats()[c * count / channels];
  return numbers;
}

// Each group of channels, over all of its positions, becomes a position whose channels are normalised.
Status NormaliseGroups(NodeRewrite& rewrite, int64_t groups) {
  const int input = rewrite.node().inputs[0];
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  const int64_t channels = shape[1], count = ProductOf(shape, 1, static_cast<int64_t>(shape.size())) / groups;
  if (count > kMostNormalised) {
    return Unimplemented(Describe(rewrite.node()), ": groups of ", count, " elements are not supported");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> scale, ByChannel(rewrite, 1, "scale", channels, groups));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> shift, ByChannel(rewrite, 2, "bias", channels, groups));
  Node turn{"Transpose", {}, {}, {input}, {}, {{"rows", groups}}};
  SWIZZLE_ASSIGN_OR_RETURN(const int turned,
                           rewrite.Precede(".turned", std::move(turn), kNoValue, {shape[0], count, groups}));
  const std::vector<float> ones(static_cast<size_t>(count), 1.0f), zeros(ones.size());
  SWIZZLE_ASSIGN_OR_RETURN(const int normal, PrecedeLayerNorm(rewrite, turned, ones, zeros));
  Node back{"Transpose", {}, {}, {normal}, {}, {{"rows", count}}};
  SWIZZLE_ASSIGN_OR_RETURN(const int planes, rewrite.Precede(".planes", std::move(back), kNoValue, shape));
  SWIZZLE_ASSIGN_OR_RETURN(const int scales, rewrite.AddFloats(".scale", scale));
  SWIZZLE_ASSIGN_OR_RETURN(const int shifts, rewrite.AddFloats(".shift", shift));
  return rewrite.Become("Affine", {planes, scales, shifts}, shape);
}

}  // namespace

Status CanonicaliseInstanceNorm(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  if (shape.size() < 3) return InvalidArgument(Describe(rewrite.node()), " of ", ShapeText(shape), " has no planes");
  return NormaliseGroups(rewrite, shape[1]);
}

Status CanonicaliseGroupNorm(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, IntAttribute(node, "num_groups", 0));
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0) {
    return InvalidArgument(Describe(node), " of ", ShapeText(shape), " in ", groups, " groups has no result");
  }
  return NormaliseGroups(rewrite, groups);
}

// Over the channels of a matrix, or over the last dimension of what was transposed to put the channels there: it is
// done before.
Status CanonicaliseLayerNorm(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  const auto rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", -1));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, rank));
  const Node* const turn = rewrite.ProducerOf(node.inputs[0]);
  const Shape source = turn != nullptr && Is(*turn, "Transpose") ? rewrite.graph().ShapeOf(turn->inputs[0]) : Shape();
  const int64_t channels = shape.back();
  const bool has_statistics = node.outputs.size() > 1;
  const bool of_matrix = rank == 2 && axis == 1;
  const bool of_images = rank == 4 && axis == 3 && source == Shape{shape[0], channels, shape[1], shape[2]} &&
                         std::get<int64_t>(turn->attributes.at("rows")) == channels;
  const auto broadcasts = [&](size_t input) {
    return rewrite.HasConstant(input) && rewrite.graph().values[node.inputs[input]].constant->elements() == 1;
  };
  if (channels > 1 && (broadcasts(1) || (rewrite.HasInput(2) && broadcasts(2)))) {
    return Unimplemented(Describe(node), ": one number that scales or shifts all channels is not supported");
  }
  if (has_statistics || !(of_matrix || of_images)) {
    return Unimplemented(Describe(node), " (opset ", rewrite.graph().opset, ") of ", ShapeText(shape), " over axis ",
                         axis, " is supported of a matrix, and of channels that a Transpose puts last, only");
  }
  const int planes = of_matrix ? node.inputs[0] : turn->inputs[0];
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> scale, ByChannel(rewrite, 1, "scale", channels, channels));
  std::vector<float> shift(scale.size());
  if (rewrite.HasInput(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(shift, ByChannel(rewrite, 2, "bias", channels, channels));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int normal, PrecedeLayerNorm(rewrite, planes, scale, shift));
  if (of_images) return rewrite.Become("Transpose", {normal}, shape, {{"rows", channels}});
  rewrite.VanishInto(normal);
  return {};
}

}  // namespace swizzle
