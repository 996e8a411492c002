#include "model_loader/passes/canonicalise.h"

#include <cmath>

#include "model_loader/passes/passes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

// The most elements that all constants made from a graph's own may have together.
constexpr int64_t kComputedElements = int64_t{1} << 26;
// How often, on average, a graph may read its constants: each reader ends up with a copy.
constexpr int64_t kMaxSharing = 8;
constexpr int64_t kSharedForFree = int64_t{1} << 28;
constexpr int64_t kMaxRowElements = int64_t{1} << 31;

struct Canonicaliser {
  std::string_view op;
  Status (*run)(NodeRewrite&);
};

constexpr Canonicaliser kCanonicalisers[] = {
    {"Abs", CanonicaliseAbs},
    {"Add", CanonicaliseArithmetic},
    {"AveragePool", CanonicalisePool},
    {"BatchNormalization", CanonicaliseBatchNorm},
    {"Cast", CanonicaliseCast},
    {"Clip", CanonicaliseClip},
    {"Concat", CanonicaliseConcat},
    {"Conv", CanonicaliseConv},
    {"ConvTranspose", CanonicaliseConvTranspose},
    {"DepthToSpace", CanonicaliseDepthToSpace},
    {"DequantizeLinear", CanonicaliseDequantize},
    {"Div", CanonicaliseArithmetic},
    {"Erf", CanonicaliseErf},
    {"Flatten", CanonicaliseFlatten},
    {"Gelu", CanonicaliseGelu},
    {"Gemm", CanonicaliseGemm},
    {"GlobalAveragePool", CanonicaliseGlobalPool},
    {"GlobalMaxPool", CanonicaliseGlobalPool},
    {"GroupNormalization", CanonicaliseGroupNorm},
    {"HardSigmoid", CanonicaliseHardSigmoid},
    {"HardSwish", CanonicaliseHardSwish},
    {"InstanceNormalization", CanonicaliseInstanceNorm},
    {"LayerNormalization", CanonicaliseLayerNorm},
    {"LeakyRelu", CanonicaliseLeakyRelu},
    {"MatMul", CanonicaliseMatMul},
    {"Max", CanonicaliseExtreme},
    {"MaxPool", CanonicalisePool},
    {"Min", CanonicaliseExtreme},
    {"Mul", CanonicaliseArithmetic},
    {"Neg", CanonicaliseNeg},
    {"PRelu", CanonicalisePRelu},
    {"Pad", CanonicalisePad},
    {"Pow", CanonicalisePow},
    {"QGemm", CanonicaliseQGemm},
    {"QLinearAdd", CanonicaliseQLinearBinary},
    {"QLinearAveragePool", CanonicaliseQLinearUnary},
    {"QLinearConcat", CanonicaliseQLinearConcat},
    {"QLinearConv", CanonicaliseQLinearConv},
    {"QLinearGlobalAveragePool", CanonicaliseQLinearUnary},
    {"QLinearLeakyRelu", CanonicaliseQLinearUnary},
    {"QLinearMatMul", CanonicaliseQLinearMatMul},
    {"QLinearMul", CanonicaliseQLinearBinary},
    {"QLinearSigmoid", CanonicaliseQLinearUnary},
    {"QLinearSoftmax", CanonicaliseQLinearSoftmax},
    {"QuantizeLinear", CanonicaliseQuantize},
    {"ReduceMax", CanonicaliseGlobalPool},
    {"ReduceMean", CanonicaliseGlobalPool},
    {"ReduceSum", CanonicaliseGlobalPool},
    {"Relu", CanonicaliseRelu},
    {"Reshape", CanonicaliseReshape},
    {"Resize", CanonicaliseResize},
    {"Sigmoid", CanonicaliseSigmoid},
    {"Slice", CanonicaliseSlice},
    {"Softmax", CanonicaliseSoftmax},
    {"SpaceToDepth", CanonicaliseSpaceToDepth},
    {"Split", CanonicaliseSplit},
    {"Squeeze", CanonicaliseSqueeze},
    {"Sub", CanonicaliseArithmetic},
    {"Sum", CanonicaliseSum},
    {"Tanh", CanonicaliseTanh},
    {"Transpose", CanonicaliseTranspose},
    {"Unsqueeze", CanonicaliseUnsqueeze},
    {"Upsample", CanonicaliseResize},
};

// That the elements of one row of the batch can be counted.
Status CheckRow(const Shape& shape, const std::string& what) {
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] > kMaxRowElements / elements) {
      return InvalidArgument(what, ": ", ShapeText(shape), " has more than ", kMaxRowElements, " elements a row");
    }
    elements *= shape[i];
  }
  return {};
}

const Canonicaliser* FindCanonicaliser(std::string_view op) {
  for (const Canonicaliser& canonicaliser : kCanonicalisers) {
    if (canonicaliser.op == op) return &canonicaliser;
  }
  return nullptr;
}

Status CanonicaliseNode(NodeRewrite& rewrite) {
  if (const Canonicaliser* canonicaliser = FindCanonicaliser(rewrite.node().op)) return canonicaliser->run(rewrite);
  return Unimplemented(Describe(rewrite.node()), " (opset ", rewrite.graph().opset,
                       ") is supported on constants and shapes only, not on activations");
}

// The walk over all nodes, front to back.
class Walk {
 public:
  explicit Walk(Graph& graph) : graph_(graph), rewriter_(graph) {}

  StatusOr<int> Run() {
    SWIZZLE_RETURN_IF_ERROR(CheckInputs());
    SWIZZLE_RETURN_IF_ERROR(CheckSharing());
    const int given = rewriter_.node_count();  // those that come to stand between them are canonical
    for (int i = 0; i < given; ++i) {
      if (rewriter_.node(i).outputs[0] == kNoValue) {
        return InvalidArgument(Describe(rewriter_.node(i)), " leaves out its first output");
      }
      if (rewriter_.node(i).domain == kSwizzleDomain) {
        SWIZZLE_RETURN_IF_ERROR(InferCanonical(i));
        continue;
      }
      SWIZZLE_ASSIGN_OR_RETURN(const bool computed, Compute(i));
      if (computed) continue;
      NodeRewrite rewrite(rewriter_, i, computed_, budget_);
      const std::string op = rewriter_.node(i).op;
      SWIZZLE_RETURN_IF_ERROR(CanonicaliseNode(rewrite));
      if (!rewriter_.IsErased(i)) KeepWholes(graph_, op, rewriter_.node(i));
    }
    rewriter_.Finish();
    return count_;
  }

 private:
  Status CheckInputs() const {
    for (int input : graph_.inputs) {
      const std::string what = Concat("graph input '", graph_.values[input].name, "'");
      SWIZZLE_RETURN_IF_ERROR(CheckRow(graph_.ShapeOf(input), what));
      if (graph_.values[input].dtype != DType::kFloat32) {
        return Unimplemented(what, " is ", DTypeName(graph_.values[input].dtype),
                             "; activations are FP32, or bytes that are only cast to it");
      }
      if (graph_.ShapeOf(input)[0] == graph_.ShapeOf(graph_.inputs[0])[0]) continue;
      return Unimplemented("graph inputs '", graph_.values[graph_.inputs[0]].name, "' and '", graph_.values[input].name,
                           "' differ in dimension 0, which must be the batch");
    }
    return {};
  }

  Status CheckSharing() const {
    int64_t held = 0, read = 0;
    for (const Value& value : graph_.values) held += value.constant ? value.constant->elements() : 0;
    for (const Node& node : graph_.nodes) {
      for (int input : node.inputs) read += graph_.IsConstant(input) ? graph_.values[input].constant->elements() : 0;
    }
    if (read <= kMaxSharing * held + kSharedForFree) return {};
    return Unimplemented("the graph reads its ", held, " constant elements ", read / held,
                         " times over; one plan takes ", kMaxSharing);
  }

  Status InferCanonical(int i) {
    const NodeRewrite rewrite(rewriter_, i, computed_, budget_);
    SWIZZLE_ASSIGN_OR_RETURN(graph_.values[rewrite.node().outputs[0]].shape, rewrite.ActivationShape(0));
    return {};
  }

  // Computes node `i` if everything it needs is known.
  StatusOr<bool> Compute(int i) {
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Elements> elements, ElementsOf(i));
    if (!elements) return false;
    NodeRewrite rewrite(rewriter_, i, computed_, budget_);
    SWIZZLE_RETURN_IF_ERROR(rewrite.Spend(static_cast<int64_t>(elements->scalars.size())));
    ++count_;
    Keep(i, *std::move(elements));
    return true;
  }

  StatusOr<std::optional<Elements>> ElementsOf(int i) {
    const Node& node = rewriter_.node(i);
    const NodeRewrite rewrite(rewriter_, i, computed_, budget_);
    const auto& input_shape = node.Input(0) == kNoValue ? std::nullopt : graph_.values[node.inputs[0]].shape;
    if (node.op == "Shape" && input_shape) {
      SWIZZLE_ASSIGN_OR_RETURN(Elements elements, EvaluateShape(node, *input_shape));
      return std::optional(std::move(elements));
    }
    if (!IsEvaluable(node)) return std::nullopt;
    std::vector<std::optional<Elements>> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (rewrite.HasInput(k) && !rewrite.IsKnown(k)) return std::nullopt;
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) inputs.push_back(rewrite.KnownElements(k));
    std::vector<const Elements*> pointers;
    pointers.reserve(inputs.size());
    for (const auto& input : inputs) pointers.push_back(input ? &*input : nullptr);
    return Evaluate(node, pointers);
  }

  // What depends on the batch is remembered, its node left to die; the rest becomes a constant.
  void Keep(int i, Elements elements) {
    const int output = rewriter_.node(i).outputs[0];
    if (elements.DependsOnBatch()) {
      graph_.values[output].dtype = elements.dtype;
      graph_.values[output].shape = elements.shape;
      computed_.emplace(output, std::move(elements));
      return;
    }
    rewriter_.ReplaceReads(output, graph_.AddConstant(graph_.values[output].name, elements.ToTensor()));
    rewriter_.Erase(i);
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::map<int, Elements> computed_;  // by value
  int64_t budget_ = kComputedElements;
  int count_ = 0;
};

}  // namespace

bool IsCanonicalised(std::string_view op) { return FindCanonicaliser(op) != nullptr; }

StatusOr<int> Canonicalise(Graph& graph) { return Walk(graph).Run(); }

StatusOr<const Tensor*> NodeRewrite::FloatConstant(size_t i, const char* what) const {
  if (!HasConstant(i)) return Unimplemented(Describe(node()), ": its ", what, " is not a constant");
  const Tensor& tensor = *graph().values[node().inputs[i]].constant;
  if (tensor.dtype != DType::kFloat32) {
    return Unimplemented(Describe(node()), ": its ", what, " is ", DTypeName(tensor.dtype), "; only FP32 is supported");
  }
  return &tensor;
}

StatusOr<const Tensor*> NodeRewrite::FloatConstant(size_t i, const char* what, const Shape& shape) const {
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* tensor, FloatConstant(i, what));
  if (tensor->shape == shape) return tensor;
  return InvalidArgument(Describe(node()), ": its ", what, " has shape ", ShapeText(tensor->shape), " instead of ",
                         ShapeText(shape));
}

StatusOr<Shape> NodeRewrite::ActivationShape(size_t i) const {
  const Value& value = graph().values[node().inputs[i]];
  if (value.constant) return Unimplemented(Describe(node()), ": its input '", value.name, "' is a constant");
  if (value.dtype != DType::kFloat32 || !value.shape || computed_.count(node().inputs[i]) > 0) {
    return Unimplemented(Describe(node()), ": its input '", value.name, "' is no FP32 activation");
  }
  return *value.shape;
}

StatusOr<float> NodeRewrite::NumberOr(size_t i, const char* what, float absent) const {
  if (!HasInput(i)) return absent;
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor* tensor, FloatConstant(i, what));
  if (tensor->elements() == 1 && !std::isnan(tensor->floats()[0])) return tensor->floats()[0];
  return InvalidArgument(Describe(node()), ": its ", what, " is not one number");
}

bool NodeRewrite::IsKnown(size_t i) const {
  if (!HasInput(i)) return false;
  if (computed_.count(node().inputs[i]) > 0) return true;
  const auto& constant = graph().values[node().inputs[i]].constant;
  // No elements in several dimensions: the others may be of any size, and would be walked.
  const bool is_empty_matrix = constant && constant->elements() == 0 && constant->shape.size() > 1;
  return constant && IsFoldable(constant->dtype) && constant->elements() <= kMaxEvaluatedElements && !is_empty_matrix;
}

std::optional<Elements> NodeRewrite::KnownElements(size_t i) const {
  if (!IsKnown(i)) return std::nullopt;
  const auto computed = computed_.find(node().inputs[i]);
  return computed != computed_.end() ? computed->second
                                     : Elements::FromTensor(*graph().values[node().inputs[i]].constant);
}

StatusOr<std::vector<int64_t>> NodeRewrite::KnownIntegers(size_t i, const char* what) const {
  const auto known = KnownElements(i);
  if (!known || IsFloating(known->dtype) || known->DependsOnBatch()) {
    return Unimplemented(Describe(node()), ": its ", what, " are not constant integers");
  }
  std::vector<int64_t> numbers;
  for (const Scalar& scalar : known->scalars) numbers.push_back(scalar.whole);
  return numbers;
}

Status NodeRewrite::Spend(int64_t elements) const {
  if (elements > budget_) {
    return Unimplemented(Describe(node()), ": the graph makes more than ", kComputedElements,
                         " elements of new constants");
  }
  budget_ -= elements;
  return {};
}

StatusOr<int> NodeRewrite::AddFloats(const char* suffix, std::span<const float> values) const {
  const int64_t elements = static_cast<int64_t>(values.size());
  SWIZZLE_RETURN_IF_ERROR(Spend(elements));
  return graph().AddConstant(node().name + suffix, Tensor::Floats({elements}, values));
}

Status NodeRewrite::Become(const char* op, std::vector<int> inputs, Shape shape,
                           std::map<std::string, Attribute> attributes) {
  SWIZZLE_RETURN_IF_ERROR(CheckRow(shape, Describe(node())));
  Node& rewritten = rewriter_.node(index_);
  rewritten.op = op;
  rewritten.domain = kSwizzleDomain;
  rewritten.attributes = std::move(attributes);
  rewritten.outputs.resize(1);
  graph().values[rewritten.outputs[0]].shape = std::move(shape);
  rewriter_.SetInputs(index_, std::move(inputs));
  return {};
}

StatusOr<int> NodeRewrite::Precede(const std::string& suffix, Node canonical, int output, Shape shape) {
  canonical.domain = kSwizzleDomain;
  canonical.name = node().name + suffix;
  SWIZZLE_RETURN_IF_ERROR(CheckRow(shape, Describe(canonical)));
  if (output == kNoValue) {
    Value made;
    made.name = canonical.name;
    output = graph().AddValue(std::move(made));
  }
  graph().values[output].shape = std::move(shape);
  canonical.outputs = {output};
  rewriter_.InsertBefore(index_, std::move(canonical));
  return output;
}

void NodeRewrite::VanishInto(int value) {
  rewriter_.ReplaceReads(node().outputs[0], value);
  rewriter_.Erase(index_);
}

void NodeRewrite::Respell(const char* op, std::vector<int> inputs) {
  Node& rewritten = rewriter_.node(index_);
  rewritten.op = op;
  rewritten.domain.clear();
  rewriter_.SetInputs(index_, std::move(inputs));
}

Status NodeRewrite::Quantise(const Quantisation& quantisation) {
  Node& rewritten = rewriter_.node(index_);
  if (Is(rewritten, "Affine") || Is(rewritten, "Softmax")) {
    return Unimplemented(Describe(rewritten), ": its result cannot be quantised at once");
  }
  const RealRange range = RangeOf(quantisation.Of(0));
  SetBounds(rewritten, range.low, range.high);
  graph().values[rewritten.outputs[0]].wholes = WholeNumbers{quantisation};
  return {};
}

std::vector<const Node*> NodeRewrite::ReadersOf(int value) const {
  std::vector<const Node*> readers;
  for (const int reader : rewriter_.Readers(value)) readers.push_back(&rewriter_.node(reader));
  return readers;
}

}  // namespace swizzle
