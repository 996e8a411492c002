// Operators that only rename dimensions, and Transpose. Every one keeps dimension 0, the batch.
#include <algorithm>

#include "model_loader/passes/canonicalise.h"
#include "model_loader/passes/moves.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

int64_t RowElements(const Shape& shape) { return ProductOf(shape, 1, static_cast<int64_t>(shape.size())); }

Status MovesBatch(const Node& node, const Shape& from, const std::string& to) {
  return Unimplemented(Describe(node), " takes ", ShapeText(from), " to ", to,
                       ", which does not keep dimension 0 as the batch");
}

// What a value is renamed from: of reshapes one after the other, the first one's input.
int RenamedFrom(const NodeRewrite& rewrite, int value) {
  for (const Node* node = rewrite.ProducerOf(value); node != nullptr && Is(*node, "Reshape");
       node = rewrite.ProducerOf(value)) {
    value = node->inputs[0];
  }
  return value;
}

// The node becomes one that moves its input's elements: whole numbers stay what they are.
Status BecomeMove(NodeRewrite& rewrite, const char* op, int from, Shape shape, std::map<std::string, Attribute> how) {
  SWIZZLE_RETURN_IF_ERROR(rewrite.Become(op, {from}, std::move(shape), std::move(how)));
  auto& values = rewrite.graph().values;
  const std::optional<WholeNumbers>& wholes = values[from].wholes;
  if (wholes && wholes->quantisation.per_tensor()) values[rewrite.node().outputs[0]].wholes = wholes;
  return {};
}

Status BecomeReshape(NodeRewrite& rewrite, Shape shape) {
  const int given = rewrite.node().inputs[0], from = RenamedFrom(rewrite, given);
  const Graph& graph = rewrite.graph();
  // Nothing is left of reshapes that undo each other, unless the caller asks for the value by this name.
  const bool vanishes = from != given && graph.values[from].shape == shape &&
                        !rewrite.IsGraphOutput(rewrite.node().outputs[0]) && !graph.values[from].wholes;
  if (vanishes) {
    rewrite.VanishInto(from);
    return {};
  }
  return BecomeMove(rewrite, "Reshape", given, std::move(shape), {});
}

// The value that is turned before, and turned back to its shape by a transpose of so many rows; kNoValue: none.
int TurnedBack(const NodeRewrite& rewrite, int64_t rows, const Shape& to) {
  const Node* const before = rewrite.ProducerOf(rewrite.node().inputs[0]);
  if (before == nullptr || !Is(*before, "Transpose") || rewrite.IsGraphOutput(rewrite.node().outputs[0])) {
    return kNoValue;
  }
  const Value& value = rewrite.graph().values[before->inputs[0]];
  const bool is_same = value.shape == to && std::get<int64_t>(before->attributes.at("rows")) * rows == RowElements(to);
  return is_same && !value.wholes ? before->inputs[0] : kNoValue;
}

// The value [N, C, H, W] of which a node transposes [N, groups, C / groups, ...] to [N, C / groups, groups, ...];
// kNoValue where it does anything else.
int ShuffledBy(const NodeRewrite& rewrite, const Shape& from, const std::vector<int64_t>& perm) {
  const size_t rank = from.size();
  if (rank < 4 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1) return kNoValue;
  for (size_t i = 3; i < rank; ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return kNoValue;
  }
  const int value = RenamedFrom(rewrite, rewrite.node().inputs[0]);
  const Graph& graph = rewrite.graph();
  const Shape& planes = graph.ShapeOf(value);
  const bool shuffles = planes.size() == 4 && planes[0] == from[0] && planes[1] == from[1] * from[2] &&
                        RowElements(planes) == RowElements(from) && !graph.values[value].wholes;
  return shuffles ? value : kNoValue;
}

// The target with 0 replaced by the input's dimensions and multiples of the batch by the batch; -1 is left to infer.
StatusOr<Shape> ReadTarget(const Node& node, const Elements& target, const Shape& from, bool& batch_named) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool allow_zero, AllowsZero(node));
  Shape shape;
  for (size_t i = 0; i < target.scalars.size(); ++i) {
    const Scalar& scalar = target.scalars[i];
    const bool copies = !scalar.times_batch && scalar.whole == 0 && !allow_zero;
    if (copies && i >= from.size()) return InvalidArgument(Describe(node), " copies a dimension its input lacks");
    const bool batch = scalar.times_batch || (copies && i == 0);
    if (batch && (i != 0 || (scalar.times_batch && scalar.whole != 1))) {
      return MovesBatch(node, from, "a shape with a multiple of the batch");
    }
    if (batch) batch_named = true;
    shape.push_back(batch ? from[0] : copies ? from[i] : scalar.whole);
  }
  return shape;
}

Status DoesNotReshape(const Node& node, const Shape& from, const Shape& to) {
  return InvalidArgument(Describe(node), ": ", ShapeText(from), " does not reshape to ", ShapeText(to));
}

// Fills the one -1 that may stand behind dimension 0.
Status InferDimension(const Node& node, const Shape& from, Shape& shape) {
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] == -1 && inferred == nullptr) {
      inferred = &shape[i];
    } else if (shape[i] < 1 || shape[i] > RowElements(from) / known) {
      return DoesNotReshape(node, from, shape);
    } else {
      known *= shape[i];
    }
  }
  if (inferred == nullptr) return {};
  if (RowElements(from) % known != 0) return DoesNotReshape(node, from, shape);
  *inferred = RowElements(from) / known;
  return {};
}

}  // namespace

Status CanonicaliseReshape(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, rewrite.ActivationShape(0));
  const auto target = rewrite.KnownElements(1);
  if (!target || target->dtype != DType::kInt64 || target->shape.size() != 1) {
    return Unimplemented(Describe(node), ": its target shape is not known when the model is loaded");
  }
  if (target->scalars.empty()) return MovesBatch(node, from, "a scalar");
  bool batch_named = false;
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, ReadTarget(node, *target, from, batch_named));
  const bool batch_inferred = !batch_named && shape[0] == -1;
  SWIZZLE_RETURN_IF_ERROR(InferDimension(node, from, shape));
  const std::string target_text = ShapeText(shape);
  if (batch_inferred) shape[0] = from[0];
  if (batch_named && RowElements(shape) != RowElements(from)) return DoesNotReshape(node, from, shape);
  if (shape[0] != from[0] || RowElements(shape) != RowElements(from)) return MovesBatch(node, from, target_text);
  return BecomeReshape(rewrite, std::move(shape));
}

Status CanonicaliseFlatten(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, FlattenAxis(node, static_cast<int64_t>(from.size())));
  if (axis != 1) return Unimplemented(Describe(node), ": axis ", axis, " is not supported, only 1");
  return BecomeReshape(rewrite, {from[0], RowElements(from)});
}

Status CanonicaliseSqueeze(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, rewrite.ActivationShape(0));
  const auto input = rewrite.KnownElements(1);
  if (rewrite.HasInput(1) && !input) return Unimplemented(Describe(node), ": its axes are not constant");
  SWIZZLE_ASSIGN_OR_RETURN(auto axes, AxesOf(node, input ? &*input : nullptr, static_cast<int64_t>(from.size())));
  const auto is_one = [](int64_t dimension) { return dimension == 1; };
  if (axes ? !axes->empty() && axes->front() == 0 : from[0] == 1) {
    return MovesBatch(node, from, "a shape without dimension 0");
  }
  auto shape = SqueezedDimensions(from, axes, is_one);
  if (!shape.ok()) return Annotate(shape.status(), Describe(node));
  return BecomeReshape(rewrite, *std::move(shape));
}

Status CanonicaliseUnsqueeze(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, rewrite.ActivationShape(0));
  const auto input = rewrite.KnownElements(1);
  if (rewrite.HasInput(1) && !input) return Unimplemented(Describe(node), ": its axes are not constant");
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, AxesGiven(node, input ? &*input : nullptr));
  const size_t added = given ? given->size() : 0;
  constexpr size_t kMaxAdded = 8;
  if (added == 0 || added > kMaxAdded) return InvalidArgument(Describe(node), " has ", added, " axes");
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes,
                           AxesOf(node, input ? &*input : nullptr, static_cast<int64_t>(from.size() + added)));
  Shape shape = UnsqueezedDimensions(from, *axes);
  if ((*axes)[0] == 0) return MovesBatch(node, from, ShapeText(shape));
  return BecomeReshape(rewrite, std::move(shape));
}

Status CanonicaliseTranspose(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermutationOf(node, from.size()));
  Shape to;
  std::vector<int64_t> moved;  // axes of more than one element, as they come out
  for (int64_t axis : perm) {
    to.push_back(from[axis]);
    if (axis != 0 && from[axis] != 1) moved.push_back(axis);
  }
  if (perm[0] != 0) return MovesBatch(node, from, ShapeText(to));
  if (std::is_sorted(moved.begin(), moved.end())) return BecomeReshape(rewrite, std::move(to));
  if (const int planes = ShuffledBy(rewrite, from, perm); planes != kNoValue) {
    SWIZZLE_ASSIGN_OR_RETURN(const int shuffled, PrecedeShuffle(rewrite, planes, from[1]));
    return rewrite.Become("Reshape", {shuffled}, std::move(to));
  }
  // [a.. b..] to [b.. a..] is the transpose of a matrix, where every b comes after every a.
  const auto rows = std::min_element(moved.begin(), moved.end());
  if (!std::is_sorted(moved.begin(), rows) || !std::is_sorted(rows, moved.end()) || moved.back() > moved.front()) {
    return Unimplemented(Describe(node), " (opset ", rewrite.graph().opset, ") of ", ShapeText(from), " to ",
                         ShapeText(to),
                         " is not supported: of the dimensions after the batch the first few must "
                         "move behind the rest, as from NHWC to NCHW");
  }
  int64_t row_count = 1;
  for (auto axis = rows; axis != moved.end(); ++axis) row_count *= from[*axis];
  if (const int turned = TurnedBack(rewrite, row_count, to); turned != kNoValue) {
    rewrite.VanishInto(turned);
    return {};
  }
  return BecomeMove(rewrite, "Transpose", node.inputs[0], std::move(to), {{"rows", row_count}});
}

Status CanonicaliseCast(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_RETURN_IF_ERROR(rewrite.ActivationShape(0));
  if (FoldableCastType(node) != DType::kFloat32)
    return Unimplemented(Describe(node), ": activations are FP32 throughout");
  rewrite.Vanish();
  return {};
}

}  // namespace swizzle
