// Gemm and MatMul: a linear layer is a 1x1 convolution on [batch, channels].
#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/integer_products.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

StatusOr<Shape> MatrixShape(const NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  if (shape.size() == 2) return shape;
  return Unimplemented(Describe(rewrite.node()), ": its input ", ShapeText(shape),
                       " is not [batch, channels]; flatten it first");
}

// The weight as a convolution's, [M, K, 1, 1], times `alpha`; the constant input is [M, K] or, if `transposed` is not
// set, [K, M].
StatusOr<int> AddLinearWeight(const NodeRewrite& rewrite, int64_t channels, bool transposed, float alpha) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* given, rewrite.FloatConstant(1, "weight"));
  const Shape& shape = given->shape;
  if (shape.size() != 2) {
    return Unimplemented(Describe(rewrite.node()), ": its weight ", ShapeText(shape), " is no matrix");
  }
  const int64_t depth = shape[transposed ? 1 : 0];
  if (depth != channels || given->elements() == 0) {
    return InvalidArgument(Describe(rewrite.node()), ": its weight ", ShapeText(shape), " does not fit ", channels,
                           " input channels");
  }
  const int64_t rows = shape[transposed ? 0 : 1];
  Tensor weight{DType::kFloat32, {rows, channels, 1, 1}, std::vector<std::byte>(given->bytes.size())};
  MakeLinearWeight(given->floats(), rows, channels, transposed, alpha, weight.floats());
  const int value = rewrite.graph().AddConstant(rewrite.node().name + ".weight", std::move(weight));
  const std::optional<WholeNumbers>& wholes = rewrite.graph().values[rewrite.node().inputs[1]].wholes;
  if (wholes && alpha > 0.0f && (wholes->quantisation.per_tensor() || wholes->axis == (transposed ? 0 : 1))) {
    WholeNumbers scaled = *wholes;
    for (float& scale : scaled.quantisation.scales) scale *= alpha;
    scaled.axis = 0;
    rewrite.graph().values[value].wholes = std::move(scaled);
  }
  return value;
}

// beta * C, broadcast over the batch to [M].
StatusOr<int> AddLinearBias(const NodeRewrite& rewrite, int64_t rows, float beta) {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* given, rewrite.FloatConstant(2, "bias"));
  const Shape& shape = given->shape;
  const bool per_row = shape == Shape{rows} || shape == Shape{1, rows};
  if (!per_row && (given->elements() != 1 || shape.size() > 2)) {
    return Unimplemented(Describe(rewrite.node()), ": its bias ", ShapeText(shape), " is not one number per output (",
                         rows, ")");
  }
  std::vector<float> bias(rows);
  for (int64_t m = 0; m < rows; ++m) bias[m] = beta * given->floats()[per_row ? m : 0];
  return rewrite.AddFloats(".bias", bias);
}

Status BecomeLinear(NodeRewrite& rewrite, const Shape& input, int weight, int bias) {
  Node attributes;
  SetWindow(attributes, Window{});
  attributes.attributes["group"] = int64_t{1};
  if (rewrite.node().attributes.contains(kByPosition)) attributes.attributes[kByPosition] = int64_t{1};
  std::vector<int> inputs = {rewrite.node().inputs[0], weight};
  if (bias != kNoValue) inputs.push_back(bias);
  return rewrite.Become("Conv", std::move(inputs), {input[0], rewrite.graph().ShapeOf(weight)[0]},
                        std::move(attributes.attributes));
}

}  // namespace

Status CanonicaliseGemm(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_a, IntAttribute(node, "transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t trans_b, IntAttribute(node, "transB", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, FloatAttribute(node, "alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, FloatAttribute(node, "beta", 1.0f));
  if (trans_a != 0) return Unimplemented(Describe(node), ": transA is not supported: it would transpose the batch");
  SWIZZLE_ASSIGN_OR_RETURN(const Shape input, MatrixShape(rewrite));
  SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddLinearWeight(rewrite, input[1], trans_b != 0, alpha));
  int bias = kNoValue;
  if (rewrite.HasInput(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(bias, AddLinearBias(rewrite, rewrite.graph().ShapeOf(weight)[0], beta));
  }
  return BecomeLinear(rewrite, input, weight, bias);
}

Status CanonicaliseMatMul(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape input, MatrixShape(rewrite));
  SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddLinearWeight(rewrite, input[1], false, 1.0f));
  return BecomeLinear(rewrite, input, weight, kNoValue);
}

}  // namespace swizzle
