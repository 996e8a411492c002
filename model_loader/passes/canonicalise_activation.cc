// Activations: clamps and functions.
#include <algorithm>
#include <cmath>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/functions.h"

namespace swizzle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status BecomeFunction(NodeRewrite& rewrite, FunctionKind kind, float alpha, float beta) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  if (!std::isfinite(alpha) || !std::isfinite(beta)) {
    return InvalidArgument(Describe(node), ": its alpha or beta is not finite");
  }
  return rewrite.Become("Function", {node.inputs[0]}, shape, FunctionAttributes({kind, alpha, beta}));
}

}  // namespace

Status CanonicaliseRelu(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  return rewrite.Become("Clamp", rewrite.node().inputs, shape, {{"low", 0.0f}, {"high", kInfinity}});
}

Status CanonicaliseClip(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(float low, FloatAttribute(node, "min", -kInfinity));  // below opset 11
  SWIZZLE_ASSIGN_OR_RETURN(float high, FloatAttribute(node, "max", kInfinity));
  if (std::isnan(low) || std::isnan(high)) return InvalidArgument(Describe(node), ": a bound is not a number");
  SWIZZLE_ASSIGN_OR_RETURN(low, rewrite.NumberOr(1, "minimum", low));
  SWIZZLE_ASSIGN_OR_RETURN(high, rewrite.NumberOr(2, "maximum", high));
  if (low == -kInfinity && high == kInfinity) {
    rewrite.Vanish();
    return {};
  }
  // Where the bounds cross, ONNX takes the upper one.
  return rewrite.Become("Clamp", {node.inputs[0]}, shape, {{"low", std::min(low, high)}, {"high", high}});
}

Status CanonicaliseSigmoid(NodeRewrite& rewrite) { return BecomeFunction(rewrite, FunctionKind::kSigmoid, 0, 0); }

Status CanonicaliseTanh(NodeRewrite& rewrite) { return BecomeFunction(rewrite, FunctionKind::kTanh, 0, 0); }

Status CanonicaliseGelu(NodeRewrite& rewrite) {
  const auto kind = GeluKindOf(rewrite.node());
  if (!kind.ok()) return Annotate(kind.status(), Describe(rewrite.node()));
  return BecomeFunction(rewrite, *kind, 0, 0);
}

// The pass RecogniseWritten has taken what is written out with it.
Status CanonicaliseErf(NodeRewrite& rewrite) {
  return Unimplemented(Describe(rewrite.node()), " (opset ", rewrite.graph().opset,
                       ") is supported in a GELU that is written out only");
}

// What is below 0 times -1.
Status CanonicaliseAbs(NodeRewrite& rewrite) { return BecomeFunction(rewrite, FunctionKind::kLeakyRelu, -1, 0); }

Status CanonicaliseExtreme(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  if (node.inputs.size() == 1) {
    SWIZZLE_RETURN_IF_ERROR(rewrite.ActivationShape(0));
    rewrite.Vanish();
    return {};
  }
  const size_t activation = rewrite.HasConstant(0) ? 1 : 0;
  if (node.inputs.size() != 2 || !rewrite.HasConstant(1 - activation)) {
    return Unimplemented(Describe(node), " is supported of an activation and a number only");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(activation));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* const tensor, rewrite.FloatConstant(1 - activation, "bound"));
  if (tensor->elements() != 1 || tensor->shape.size() > shape.size() || std::isnan(tensor->floats()[0])) {
    return Unimplemented(Describe(node), ": its constant ", ShapeText(tensor->shape), " is not one number");
  }
  const float bound = tensor->floats()[0];
  const bool is_max = node.op == "Max";
  return rewrite.Become("Clamp", {node.inputs[activation]}, shape,
                        {{"low", is_max ? bound : -kInfinity}, {"high", is_max ? kInfinity : bound}});
}

Status CanonicaliseHardSigmoid(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(rewrite.node(), "alpha", 0.2f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, FloatAttribute(rewrite.node(), "beta", 0.5f));
  return BecomeFunction(rewrite, FunctionKind::kHardSigmoid, alpha, beta);
}

Status CanonicaliseHardSwish(NodeRewrite& rewrite) {
  return BecomeFunction(rewrite, FunctionKind::kHardSwish, 1.0f / 6.0f, 0.5f);
}

Status CanonicaliseLeakyRelu(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(rewrite.node(), "alpha", 0.01f));
  return BecomeFunction(rewrite, FunctionKind::kLeakyRelu, alpha, 0);
}

}  // namespace swizzle
