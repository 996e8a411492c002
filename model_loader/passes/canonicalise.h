// How one ONNX node becomes a canonical one. Internal to the pass Canonicalise (passes/passes.h).
#ifndef SWIZZLE_MODEL_LOADER_PASSES_CANONICALISE_H_
#define SWIZZLE_MODEL_LOADER_PASSES_CANONICALISE_H_

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/semantics/elements.h"

namespace swizzle {

// One node under the walk, and what is known of its inputs. Lives for one step of the walk.
class NodeRewrite {
 public:
  // `computed` holds, by value, what the walk has computed so far that depends on the batch size; `budget` how many
  // elements of constants it may still make.
  NodeRewrite(Rewriter& rewriter, int index, const std::map<int, Elements>& computed, int64_t& budget)
      : rewriter_(rewriter), index_(index), computed_(computed), budget_(budget) {}

  Graph& graph() const { return rewriter_.graph(); }
  const Node& node() const { return rewriter_.node(index_); }
  bool HasInput(size_t i) const { return node().Input(i) != kNoValue; }
  bool HasConstant(size_t i) const { return graph().IsConstant(node().Input(i)); }

  // The constant FP32 input `i`; INVALID_ARGUMENT or UNIMPLEMENTED, calling it `what`, if it is anything else.
  StatusOr<const Tensor*> FloatConstant(size_t i, const char* what) const;
  // Likewise, with exactly this shape.
  StatusOr<const Tensor*> FloatConstant(size_t i, const char* what, const Shape& shape) const;
  // The shape of input `i`, an FP32 activation: not a constant, not shape arithmetic.
  StatusOr<Shape> ActivationShape(size_t i) const;
  // The one number that input `i` holds, calling it `what`; `absent` where there is no such input.
  StatusOr<float> NumberOr(size_t i, const char* what, float absent) const;
  // The elements of input `i`, if it is a small constant or was computed.
  std::optional<Elements> KnownElements(size_t i) const;
  // Likewise, integers none of which is the batch; UNIMPLEMENTED, calling the input `what`, if it holds anything else.
  StatusOr<std::vector<int64_t>> KnownIntegers(size_t i, const char* what) const;
  // Whether there is such an input; cheaper.
  bool IsKnown(size_t i) const;

  // Takes `elements` from the budget. UNIMPLEMENTED if it is spent: others may compute the graph.
  Status Spend(int64_t elements) const;
  // A new constant [values.size()] called after the node.
  StatusOr<int> AddFloats(const char* suffix, std::span<const float> values) const;
  // The node becomes the canonical `op`, reading `inputs`; its output is FP32 of `shape`. INVALID_ARGUMENT if that is
  // larger than any network's value may be.
  Status Become(const char* op, std::vector<int> inputs, Shape shape, std::map<std::string, Attribute> attributes = {});
  // A canonical node of FP32 comes to stand before this one, whose name it takes with `suffix`; its output, of `shape`,
  // is `output`, or, where that is kNoValue, a new value. Which one it is. References to nodes are no longer valid.
  StatusOr<int> Precede(const std::string& suffix, Node canonical, int output, Shape shape);
  // Nothing is left of the node: who read its output reads its first input.
  void Vanish() { VanishInto(node().inputs[0]); }
  // Likewise, reads `value`.
  void VanishInto(int value);
  // The node becomes the operator of this name in the domain "", reading `inputs`, for another function to go on with.
  void Respell(const char* op, std::vector<int> inputs);
  // Holds the output of the node, which is canonical, to the range of these whole numbers, which it may be stored as.
  // UNIMPLEMENTED where its operator clamps nothing.
  Status Quantise(const Quantisation& quantisation);

  // The node that makes the value; null for constants and graph inputs.
  const Node* ProducerOf(int value) const {
    const int producer = rewriter_.Producer(value);
    return producer < 0 ? nullptr : &rewriter_.node(producer);
  }
  bool IsGraphOutput(int value) const { return rewriter_.IsGraphOutput(value); }
  std::vector<const Node*> ReadersOf(int value) const;

 private:
  Rewriter& rewriter_;
  const int index_;
  const std::map<int, Elements>& computed_;
  int64_t& budget_;
};

// Whether an operator of this name, in the domain "" or com.microsoft, becomes a canonical one.
bool IsCanonicalised(std::string_view op);

// Canonical linear and window operators.
Status CanonicaliseConv(NodeRewrite& rewrite);
Status CanonicaliseConvTranspose(NodeRewrite& rewrite);  // one that expand_transposed left
Status CanonicalisePool(NodeRewrite& rewrite);           // MaxPool, AveragePool
Status CanonicaliseGlobalPool(NodeRewrite& rewrite);     // GlobalMaxPool, GlobalAveragePool, Reduce..
Status CanonicaliseGemm(NodeRewrite& rewrite);
Status CanonicaliseMatMul(NodeRewrite& rewrite);

// Canonical element-wise operators.
Status CanonicaliseRelu(NodeRewrite& rewrite);
Status CanonicaliseClip(NodeRewrite& rewrite);
Status CanonicaliseSigmoid(NodeRewrite& rewrite);
Status CanonicaliseHardSigmoid(NodeRewrite& rewrite);
Status CanonicaliseHardSwish(NodeRewrite& rewrite);
Status CanonicaliseLeakyRelu(NodeRewrite& rewrite);
Status CanonicaliseArithmetic(NodeRewrite& rewrite);  // Add, Sub, Mul, Div
Status CanonicaliseSum(NodeRewrite& rewrite);
Status CanonicaliseNeg(NodeRewrite& rewrite);
Status CanonicalisePow(NodeRewrite& rewrite);      // squares
Status CanonicaliseExtreme(NodeRewrite& rewrite);  // Max, Min: of an activation and a number
Status CanonicaliseAbs(NodeRewrite& rewrite);
Status CanonicaliseErf(NodeRewrite& rewrite);
Status CanonicaliseTanh(NodeRewrite& rewrite);
Status CanonicaliseGelu(NodeRewrite& rewrite);
Status CanonicaliseBatchNorm(NodeRewrite& rewrite);
Status CanonicalisePRelu(NodeRewrite& rewrite);
Status CanonicaliseSoftmax(NodeRewrite& rewrite);
Status CanonicalisePad(NodeRewrite& rewrite);

// What moves whole channels and planes, or resizes planes.
Status CanonicaliseConcat(NodeRewrite& rewrite);
Status CanonicaliseSlice(NodeRewrite& rewrite);
Status CanonicaliseSplit(NodeRewrite& rewrite);
Status CanonicaliseDepthToSpace(NodeRewrite& rewrite);
Status CanonicaliseSpaceToDepth(NodeRewrite& rewrite);
Status CanonicaliseResize(NodeRewrite& rewrite);  // Resize, Upsample

// Everything that only renames dimensions; a Cast to the type that the value has.
Status CanonicaliseReshape(NodeRewrite& rewrite);
Status CanonicaliseFlatten(NodeRewrite& rewrite);
Status CanonicaliseSqueeze(NodeRewrite& rewrite);
Status CanonicaliseUnsqueeze(NodeRewrite& rewrite);
Status CanonicaliseCast(NodeRewrite& rewrite);

// Norms of instances, groups and positions.
Status CanonicaliseInstanceNorm(NodeRewrite& rewrite);
Status CanonicaliseGroupNorm(NodeRewrite& rewrite);
Status CanonicaliseLayerNorm(NodeRewrite& rewrite);

// Quantised operators.
Status CanonicaliseQuantize(NodeRewrite& rewrite);
Status CanonicaliseDequantize(NodeRewrite& rewrite);
Status CanonicaliseQLinearConv(NodeRewrite& rewrite);
Status CanonicaliseQLinearMatMul(NodeRewrite& rewrite);
Status CanonicaliseQGemm(NodeRewrite& rewrite);
Status CanonicaliseQLinearBinary(NodeRewrite& rewrite);  // QLinearAdd, QLinearMul
Status CanonicaliseQLinearConcat(NodeRewrite& rewrite);
Status CanonicaliseQLinearSoftmax(NodeRewrite& rewrite);
Status CanonicaliseQLinearUnary(NodeRewrite& rewrite);  // the rest
// The real number that a Pad of whole numbers pads by; nothing where it pads by a real one.
StatusOr<std::optional<float>> WholePadding(const NodeRewrite& rewrite);
// The output of a node that was `op` is of the whole numbers that its input is of, if the node gives no others.
void KeepWholes(Graph& graph, std::string_view op, const Node& canonical);

// A Transpose that keeps the batch: a reshape where only dimensions of extent 1 move, else the transpose of a matrix,
// or a shuffle of channels.
Status CanonicaliseTranspose(NodeRewrite& rewrite);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PASSES_CANONICALISE_H_
