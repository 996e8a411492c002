#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/given_axes.h"

namespace swizzle {
namespace {

using Axes = std::vector<int64_t>;

// Every view has a permutation of its own.
constexpr size_t kMaxRank = 8;
const Axes kToNchw = {0, 3, 1, 2}, kToNhwc = {0, 2, 3, 1};

// A value that is the transpose of another: dimension i of it is dimension perm[i] of `source`.
struct View {
  int source = kNoValue;
  Axes perm;
  std::string name;  // of the Transpose that makes the value where something needs it
  bool made = false;

  bool IsIdentity() const { return std::is_sorted(perm.begin(), perm.end()); }
  int64_t Rank() const { return static_cast<int64_t>(perm.size()); }
};

bool OneOf(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsUnary(const Node& node) {
  return OneOf(node.op, {"Cast", "Clip", "Function", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid",
                         "Tanh"});
}

bool IsBroadcastArithmetic(const Node& node) {
  const bool numpy_broadcast = node.attributes.count("axis") + node.attributes.count("broadcast") == 0;
  return IsArithmetic(node.op) && numpy_broadcast;
}

// Builds the nodes anew, front to back, with views in place of the transposes.
class TransposeFolder {
 public:
  explicit TransposeFolder(Graph& graph) : graph_(graph) {}

  StatusOr<int> Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const Node& node : nodes) {
      for (const int input : node.inputs) {
        if (input != kNoValue) ++reads_[input];
      }
    }
    for (const GraphOutput& output : graph_.outputs) ++reads_[output.value];
    ViewInputs(nodes);
    for (Node& node : nodes) {
      SWIZZLE_ASSIGN_OR_RETURN(const bool folded, Fold(node));
      if (!folded) Keep(std::move(node));
    }
    for (GraphOutput& output : graph_.outputs) output.value = Made(output.value);
    Rewriter(graph_).Finish();
    return count_;
  }

 private:
  // A graph input that is transposed to NCHW, normalised or padded before or after, is transposed at once and then seen
  // as the view of that, so that these operators find channels where they look for them.
  void ViewInputs(const std::vector<Node>& nodes) {
    std::map<int, int> origins;  // of what element-wise operators and pads make of graph inputs
    for (int input : graph_.inputs) origins.emplace(input, input);
    for (const Node& node : nodes) {
      if (node.outputs[0] == kNoValue) continue;
      const bool passes = IsUnary(node) || IsBroadcastArithmetic(node) || node.op == "Pad";
      for (int input : node.inputs) {
        const auto origin = origins.find(input);
        if (origin == origins.end()) continue;
        if (passes) origins.emplace(node.outputs[0], origin->second);
        if (IsToNchw(node)) ViewInput(origin->second);
        break;
      }
    }
  }

  static bool IsToNchw(const Node& node) {
    const auto perm = node.attributes.find("perm");
    return node.op == "Transpose" && perm != node.attributes.end() && perm->second == Attribute(kToNchw);
  }

  void ViewInput(int input) {
    if (ViewOf(input) != nullptr || graph_.values[input].shape->size() != kToNchw.size()) return;
    Value nchw = graph_.values[input];
    nchw.name += ".nchw";
    nchw.shape.reset();
    nchw.arrives_whole = false;
    Node node;
    node.op = "Transpose";
    node.name = nchw.name;
    node.inputs = {input};
    node.outputs = {graph_.AddValue(std::move(nchw))};
    node.attributes["perm"] = kToNchw;
    views_.emplace(input, View{node.outputs[0], kToNhwc, "", true});
    graph_.nodes.push_back(std::move(node));
  }

  StatusOr<bool> Fold(Node& node) {
    if (node.outputs[0] == kNoValue) return false;
    for (int& input : node.inputs) {
      const View* view = ViewOf(input);
      if (view != nullptr && view->IsIdentity()) input = view->source;
    }
    if (node.op == "Transpose") return FoldTranspose(node);
    if (IsBroadcastArithmetic(node)) return FoldArithmetic(node);
    if (ViewOf(node.Input(0)) == nullptr) return false;
    if (IsUnary(node)) {
      Push(node, *ViewOf(node.inputs[0]));
      return true;
    }
    if (node.op == "ReduceMean") return FoldMean(node);
    if (node.op == "Softmax") return FoldSoftmax(node);
    if (node.op == "LayerNormalization") return FoldNorm(node);
    if (node.op == "MatMul") return FoldProduct(node);
    if (node.op == "Pad") return FoldPad(node);
    if (node.op == "Concat") return FoldConcat(node);
    return false;
  }

  const View* ViewOf(int value) const {
    const auto found = views_.find(value);
    return found == views_.end() ? nullptr : &found->second;
  }

  // The value, with a node that makes it if it was but a view so far.
  int Made(int value) {
    const auto found = views_.find(value);
    if (found == views_.end()) return value;
    View& view = found->second;
    if (view.IsIdentity()) return view.source;
    if (view.made) return value;
    Node node;
    node.op = "Transpose";
    node.name = view.name;
    node.inputs = {view.source};
    node.outputs = {value};
    node.attributes["perm"] = view.perm;
    graph_.nodes.push_back(std::move(node));
    view.made = true;
    return value;
  }

  void Keep(Node node) {
    for (int& input : node.inputs) input = Made(input);
    graph_.nodes.push_back(std::move(node));
  }

  // The node works on the view's source; its output is a view of what it makes of that. Its other inputs are as they
  // should be.
  void Push(Node& node, const View& view) {
    const int output = node.outputs[0];
    node.inputs[0] = view.source;
    View pushed{graph_.AddValue(graph_.values[output]), view.perm, node.name + ".transpose"};
    node.outputs[0] = pushed.source;
    views_.emplace(output, std::move(pushed));
    Keep(std::move(node));
    ++count_;
  }

  StatusOr<bool> FoldTranspose(const Node& node) {
    const int input = node.inputs[0];
    if (graph_.IsConstant(input) || node.attributes.count("perm") == 0) return false;
    SWIZZLE_ASSIGN_OR_RETURN(Axes perm, IntsAttribute(node, "perm", {}));  // which says of what rank it is
    if (perm.size() > kMaxRank) return false;
    SWIZZLE_ASSIGN_OR_RETURN(perm, PermutationOf(node, perm.size()));
    int source = input;
    if (const View* view = ViewOf(input)) {
      if (view->perm.size() != perm.size()) return false;
      for (int64_t& axis : perm) axis = view->perm[axis];
      source = view->source;
      ++count_;
    }
    views_.emplace(node.outputs[0], View{source, std::move(perm), node.name});
    return true;
  }

  // Two views alike, or a view and a constant.
  StatusOr<bool> FoldArithmetic(Node& node) {
    const View* a = ViewOf(node.inputs[0]);
    const View* b = ViewOf(node.inputs[1]);
    if (a != nullptr && b != nullptr) {
      if (a->perm != b->perm) return false;
      node.inputs[1] = b->source;
      Push(node, *a);
      return true;
    }
    if (a == nullptr && b == nullptr) return false;
    const View view = a != nullptr ? *a : *b;
    const size_t other = a != nullptr ? 1 : 0;
    const std::optional<int> constant = ConstantFor(view, node.inputs[other]);
    if (!constant) return false;
    const int output = node.outputs[0];
    node.inputs = {view.source, view.source};
    node.inputs[other] = *constant;
    View pushed{graph_.AddValue(graph_.values[output]), view.perm, node.name + ".transpose"};
    node.outputs[0] = pushed.source;
    views_.emplace(output, std::move(pushed));
    Keep(std::move(node));
    ++count_;
    return true;
  }

  // The constant `value`, which broadcasts to the view, as it broadcasts to the view's source. Nothing if its elements
  // would have to move, or are too many.
  std::optional<int> ConstantFor(const View& view, int value) {
    if (!graph_.IsConstant(value)) return std::nullopt;
    const Tensor& given = *graph_.values[value].constant;
    const size_t skipped = view.perm.size() - std::min(view.perm.size(), given.shape.size());
    const int64_t wide = std::count_if(given.shape.begin(), given.shape.end(), [](int64_t d) { return d != 1; });
    if (given.shape.size() > view.perm.size() || wide > 1 || given.elements() > budget_) return std::nullopt;
    if (wide == 0 && given.shape.size() <= 1) return value;
    budget_ -= given.elements();
    Tensor moved = given;
    moved.shape.assign(view.perm.size(), 1);
    for (size_t i = 0; i < given.shape.size(); ++i) moved.shape[view.perm[skipped + i]] = given.shape[i];
    return graph_.AddConstant(graph_.values[value].name, std::move(moved));
  }

  // The integers of a constant input.
  std::optional<Axes> Integers(int value) const {
    if (!graph_.IsConstant(value) || !IsFoldable(graph_.values[value].dtype)) return std::nullopt;
    constexpr int64_t kMaxElements = 64;
    const Tensor& tensor = *graph_.values[value].constant;
    if (IsFloating(tensor.dtype) || tensor.elements() > kMaxElements) return std::nullopt;
    const std::optional<Elements> elements = Elements::FromTensor(tensor);
    Axes integers;
    for (const Scalar& scalar : elements->scalars) integers.push_back(scalar.whole);
    return integers;
  }

  // A mean over named axes: over the same ones of the source. Without the reduced dimensions, what is left must stand
  // in the source's order.
  StatusOr<bool> FoldMean(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    const auto of_input = [&] { return StatusOr<Axes>(Integers(node.inputs[1]).value_or(Axes())); };
    SWIZZLE_ASSIGN_OR_RETURN(auto given, GivenAxes(node, node.Input(1) != kNoValue, of_input));
    SWIZZLE_ASSIGN_OR_RETURN(const bool keeps, KeepsAxes(node));
    Axes axes = std::move(given).value_or(Axes());
    if (axes.empty()) return false;
    std::vector<bool> reduced(view.perm.size(), false);
    for (int64_t& axis : axes) {
      SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, view.Rank()));
      reduced[axis] = true;
      axis = view.perm[axis];
    }
    Axes left;
    for (size_t i = 0; i < view.perm.size(); ++i) {
      if (!reduced[i]) left.push_back(view.perm[i]);
    }
    if (!keeps && !std::is_sorted(left.begin(), left.end())) return false;
    node.attributes["axes"] = axes;
    node.inputs.resize(1);
    if (keeps) {
      Push(node, view);
      return true;
    }
    node.inputs[0] = view.source;
    Keep(std::move(node));
    ++count_;
    return true;
  }

  // Below opset 13 it runs over several dimensions together.
  StatusOr<bool> FoldSoftmax(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    if (graph_.opset < 13) return false;
    SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", -1));
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, view.Rank()));
    node.attributes["axis"] = view.perm[axis];
    Push(node, view);
    return true;
  }

  // Whether the channels of images stand last.
  static bool IsNhwc(const View& view) { return view.perm == kToNhwc; }

  // Over the channels of images that stand last: a canonical norm of these.
  StatusOr<bool> FoldNorm(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", -1));
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, view.Rank()));
    SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(node, "epsilon", 1e-5f));
    const bool has_statistics = node.outputs.size() > 1;
    const auto is_vector = [&](int value) {
      if (!graph_.IsConstant(value)) return false;
      const Tensor& tensor = *graph_.values[value].constant;
      return tensor.dtype == DType::kFloat32 && tensor.shape.size() == 1;
    };
    if (!IsNhwc(view) || axis != view.Rank() - 1 || has_statistics || !is_vector(node.Input(1))) return false;
    if (!(epsilon >= 0.0f) || !std::isfinite(epsilon)) return false;
    int shift = node.Input(2);
    if (shift != kNoValue && !is_vector(shift)) return false;
    const int64_t channels = graph_.values[node.inputs[1]].constant->elements();
    if (channels == 1) return false;  // it broadcasts
    if (shift == kNoValue) {
      const std::vector<float> zeros(static_cast<size_t>(channels));
      shift = graph_.AddConstant(node.name + ".shifts", Tensor::Floats({channels}, zeros));
    }
    if (graph_.values[shift].constant->elements() != channels) return false;
    node.op = "LayerNorm";
    node.domain = kSwizzleDomain;
    node.inputs = {node.inputs[0], node.inputs[1], shift};
    node.attributes = {{"epsilon", epsilon}, {"centred", int64_t{1}}};
    Push(node, view);
    return true;
  }

  // Channels of images that stand last times a constant matrix: a convolution 1x1. The matrix is read by it alone, so
  // that none is held twice.
  StatusOr<bool> FoldProduct(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    const int weight = node.inputs[1];
    if (!IsNhwc(view) || !graph_.IsConstant(weight) || reads_[weight] != 1) return false;
    Tensor& given = *graph_.values[weight].constant;
    if (given.dtype != DType::kFloat32 || given.shape.size() != 2 || given.elements() == 0) return false;
    const int64_t depth = given.shape[0], rows = given.shape[1];
    std::vector<float> turned(static_cast<size_t>(given.elements()));
    MakeLinearWeight(given.floats(), rows, depth, /*transposed=*/false, 1.0f, turned);
    given = Tensor();
    node.op = "Conv";
    node.attributes.clear();
    node.inputs[1] = graph_.AddConstant(graph_.values[weight].name, Tensor::Floats({rows, depth, 1, 1}, turned));
    Push(node, view);
    return true;
  }

  // Of views that are all alike.
  StatusOr<bool> FoldConcat(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", 1));
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, view.Rank()));
    std::vector<int> sources;
    for (const int input : node.inputs) {
      const View* const other = ViewOf(input);
      if (other == nullptr || other->perm != view.perm) return false;
      sources.push_back(other->source);
    }
    node.inputs = std::move(sources);
    node.attributes["axis"] = view.perm[axis];
    Push(node, view);
    return true;
  }

  StatusOr<bool> FoldPad(Node& node) {
    const View view = *ViewOf(node.inputs[0]);
    const bool attribute = node.attributes.count("pads") > 0;
    SWIZZLE_ASSIGN_OR_RETURN(Axes pads, IntsAttribute(node, "pads", {}));
    if (!attribute) pads = Integers(node.Input(1)).value_or(Axes());
    if (node.Input(3) != kNoValue || pads.size() != 2 * view.perm.size()) return false;
    Axes moved(pads.size());
    for (size_t i = 0; i < view.perm.size(); ++i) {
      moved[view.perm[i]] = pads[i];
      moved[view.perm.size() + view.perm[i]] = pads[view.perm.size() + i];
    }
    if (attribute) {
      node.attributes["pads"] = std::move(moved);
    } else {
      node.inputs[1] =
          graph_.AddConstant(node.name + ".pads", Tensor::Int64s({static_cast<int64_t>(moved.size())}, moved));
    }
    Push(node, view);
    return true;
  }

  Graph& graph_;
  std::map<int, View> views_;          // by value
  std::map<int, int> reads_;           // by value: how often nodes and outputs read it
  int64_t budget_ = int64_t{1} << 22;  // elements of constants that may still be copied
  int count_ = 0;
};

}  // namespace

StatusOr<int> FoldTransposes(Graph& graph) { return TransposeFolder(graph).Run(); }

}  // namespace swizzle
