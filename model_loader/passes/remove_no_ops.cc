#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "kernels/base/dtype_row.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/dropout.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {
namespace {

// Whether every element of the constant is this number.
bool IsAll(const Tensor& tensor, double number) {
  bool same = tensor.elements() > 0;
  const bool is_typed = VisitElementType(tensor.dtype, [&]<typename T>(T) {
    for (size_t at = 0; at < tensor.bytes.size() && same; at += sizeof(T)) {
      T element;
      std::memcpy(&element, tensor.bytes.data() + at, sizeof(T));
      same = static_cast<double>(Widened(element)) == number;
    }
  });
  return is_typed && same;
}

// What leaves the other operand as it is. Where it has to be the second, or may be the first, too.
struct Neutral {
  std::string_view op;
  double number;
  bool either;
};
// An Add of 0 makes 0 of -0, which ONNX Runtime takes for the same, too; all others are exact.
constexpr Neutral kNeutral[] = {{"Add", 0, true},  {"And", 1, true},  {"BitShift", 0, false},
                                {"Div", 1, false}, {"Mul", 1, true},  {"Or", 0, true},
                                {"Pow", 1, false}, {"Sub", 0, false}, {"Xor", 0, true}};

// Operators that are undone by themselves.
constexpr std::string_view kInvolutions[] = {"Neg", "Not"};
// Operators that make one operand what it is.
constexpr std::string_view kOfOperands[] = {"Max", "Mean", "Min", "Sum"};
// Reductions that make one element what it is.
constexpr std::string_view kOfOneElement[] = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"};

// Whether every number of one type is one of the other.
bool Holds(DType wide, DType narrow) {
  const DTypeRow &to = RowOf(wide), &from = RowOf(narrow);
  if (to.kind == DTypeKind::kText || from.kind == DTypeKind::kText) return false;
  if (wide == narrow || from.kind == DTypeKind::kTruth) return true;
  if (from.kind == DTypeKind::kReal) return to.kind == DTypeKind::kReal && to.bytes > from.bytes;
  if (to.kind == DTypeKind::kReal) return to.digits > static_cast<int>(8 * from.bytes);
  if (to.kind == DTypeKind::kTruth) return false;
  return to.bytes > from.bytes && (to.kind == DTypeKind::kSigned || from.kind == DTypeKind::kUnsigned);
}

class Removal {
 public:
  explicit Removal(Graph& graph) : graph_(graph), rewriter_(graph), walk_(graph) {}

  int Run() {
    int count = 0;
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      const int same = SameAs(i);
      if (same == kNoValue) {
        walk_.Visit(At(i));
        continue;
      }
      rewriter_.ReplaceReads(At(i).outputs[0], same);
      rewriter_.Erase(i);
      ++count;
    }
    if (count > 0) rewriter_.Finish();
    return count;
  }

 private:
  Node& At(int index) { return rewriter_.node(index); }
  Node* MakerOf(int value) {
    const int maker = rewriter_.Producer(value);
    return maker < 0 ? nullptr : &At(maker);
  }

  bool IsRead(int value) {
    return value != kNoValue && (!rewriter_.Readers(value).empty() || rewriter_.IsGraphOutput(value));
  }

  // The value that the node's output is equal to; kNoValue where it isn't known to be any.
  int SameAs(int index) {
    const Node& node = At(index);
    if (node.inputs.empty() || node.outputs.empty() || node.outputs[0] == kNoValue) return kNoValue;
    if (!walk_.At(node).HasRequired()) return kNoValue;
    if (std::any_of(node.outputs.begin() + 1, node.outputs.end(), [this](int value) { return IsRead(value); })) {
      return kNoValue;
    }
    const int operand = OnlyOperand(node);
    if (operand != kNoValue) return operand;
    if (node.inputs[0] == kNoValue) return kNoValue;
    if (ChangesNothing(node)) return node.inputs[0];
    return Undone(node);
  }

  // Of operators of several operands, the one that comes out.
  int OnlyOperand(const Node& node) {
    const bool one = node.inputs.size() == 1;
    if (std::ranges::find(kOfOperands, node.op) != std::end(kOfOperands) && one) return node.inputs[0];
    if (node.op == "Concat") return OnlyJoined(node);
    if (node.op == "Where") return Chosen(node);
    const auto neutral = std::ranges::find(kNeutral, node.op, &Neutral::op);
    if (neutral == std::end(kNeutral) || node.inputs.size() != 2) return kNoValue;
    for (const size_t constant : {1, 0}) {
      const int value = node.inputs[constant], other = node.inputs[1 - constant];
      if ((constant == 0 && !neutral->either) || !graph_.IsConstant(value) || other == kNoValue) continue;
      if (KeepsShapeOf(node, 1 - constant) && IsAll(*graph_.values[value].constant, neutral->number)) return other;
    }
    return kNoValue;
  }

  // Whether an operator of each element makes a value of the shape that its operand has.
  bool KeepsShapeOf(const Node& node, size_t operand) {
    const SymbolicNode known = walk_.At(node);
    const auto source = ShapeSource(known);
    if (source && known.In(*source).alike == known.In(operand).alike) return true;
    const auto shape = ResultShape(known, 0, walk_.symbols());
    return shape && shape == known.In(operand).shape;
  }

  // Where all others are empty.
  int OnlyJoined(const Node& node) {
    int only = kNoValue;
    for (const int input : node.inputs) {
      if (input == kNoValue) return kNoValue;
      const auto& shape = walk_.Of(input).shape;
      const auto axis = shape ? walk_.At(node).Axis(1, shape->size()) : std::nullopt;
      if (axis && (*shape)[*axis].Is(0) && node.inputs.size() > 1) continue;
      if (only != kNoValue) return kNoValue;
      only = input;
    }
    return only;
  }

  int Chosen(const Node& node) {
    if (!graph_.IsConstant(node.Input(0))) return kNoValue;
    const Tensor& condition = *graph_.values[node.inputs[0]].constant;
    const size_t chosen = IsAll(condition, 1) ? 1 : IsAll(condition, 0) ? 2 : 0;
    return chosen != 0 && KeepsShapeOf(node, chosen) ? node.Input(chosen) : kNoValue;
  }

  bool ChangesNothing(const Node& node) {
    const std::string& op = node.op;
    const SymbolicNode known = walk_.At(node);
    if (op == "Identity") return true;
    if (op == "Dropout") return CheckInference(graph_, node).ok();
    if (op == "Cast" || op == "CastLike") return known.In(0).dtype && TypeOfResult(known, 0) == known.In(0).dtype;
    if (op == "Reshape" && IsToOwnShape(node)) return true;
    if (op == "Flatten" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") return KeepsShape(known);
    if (op == "Expand") return IsToOwnShape(node) || KeepsShape(known);
    if (op == "Transpose") return KeepsOrder(known);
    if (op == "Slice") return IsWhole(known);
    if (op == "Split") return node.outputs.size() == 1 && KeepsShape(known);
    if (op == "Pad") return PadsNothing(known);
    if (op == "Tile") return IsAllOnes(known.Numbers(1));
    if (op == "DepthToSpace" || op == "SpaceToDepth") return known.Int("blocksize", 0) == 1;
    if (op == "AveragePool" || op == "MaxPool") return IsOneByOne(known);
    if (op == "Resize" || op == "Upsample") return KeepsSize(known);
    if (op == "Gather") return TakesAll(known);
    return std::ranges::find(kOfOneElement, op) != std::end(kOfOneElement) && ReducesNothing(known);
  }

  bool KeepsShape(const SymbolicNode& node) {
    const auto shape = ResultShape(node, 0, walk_.symbols());
    return shape && shape == node.In(0).shape;
  }

  // Whether the shape that it is told is that of its input, however many dimensions these are.
  bool IsToOwnShape(const Node& node) {
    if (node.Input(1) == kNoValue) return false;
    const int shape_of = walk_.Of(node.inputs[1]).shape_of;
    return shape_of != kNoValue && shape_of == walk_.Of(node.inputs[0]).alike;
  }

  // Dimensions of 1 may move among the others.
  static bool KeepsOrder(const SymbolicNode& node) {
    const SymbolicShape* const shape = node.ShapeOf(0);
    const auto perm = node.node().attributes.find("perm");
    if (shape == nullptr && perm == node.node().attributes.end()) return false;
    size_t rank = shape == nullptr ? 0 : shape->size();
    if (shape == nullptr) rank = IntsAttribute(node.node(), "perm", {}).value_or(std::vector<int64_t>()).size();
    const auto order = PermutationOf(node.node(), rank);
    if (!order.ok()) return false;
    std::vector<int64_t> moved;
    for (size_t i = 0; i < rank; ++i) {
      const auto from = static_cast<size_t>((*order)[i]);
      if (shape != nullptr && (*shape)[from] != (*shape)[i]) return false;
      if (shape == nullptr || !(*shape)[from].Is(1)) moved.push_back((*order)[i]);
    }
    return std::ranges::is_sorted(moved);
  }

  bool IsWhole(const SymbolicNode& node) {
    const auto slice = SliceOf(node);
    if (!slice) return false;
    const auto is_one = [](int64_t step) { return step == 1; };
    return std::ranges::all_of(slice->steps, is_one) && KeepsShape(node);
  }

  static bool PadsNothing(const SymbolicNode& node) {
    const auto is_zero = [](const SymbolicInt& pad) { return pad.Is(0); };
    auto given = node.List(1);  // whatever the rank
    if (!given && !node.Has(1)) given = PadsOf(node);
    return given && !given->empty() && std::ranges::all_of(*given, is_zero);
  }

  static bool IsAllOnes(const std::optional<std::vector<int64_t>>& numbers) {
    return numbers && std::ranges::all_of(*numbers, [](int64_t number) { return number == 1; });
  }

  static bool IsOneByOne(const SymbolicNode& node) {
    const SymbolicShape* const shape = node.ShapeOf(0);
    if (shape == nullptr || shape->size() < 3) return false;
    const size_t planes = shape->size() - 2;
    const auto pads = node.Ints("pads", 2 * planes, 0);
    const bool padless = pads && std::ranges::all_of(*pads, [](int64_t pad) { return pad == 0; });
    return padless && IsAllOnes(node.Ints("kernel_shape", planes, 0)) && IsAllOnes(node.Ints("strides", planes, 1));
  }

  // By scales of 1, or to the sizes that there are. What a crop makes lies elsewhere.
  bool KeepsSize(const SymbolicNode& node) {
    const auto mode = StringAttribute(node.node(), "coordinate_transformation_mode", "");
    if (!mode.ok() || *mode == "tf_crop_and_resize") return false;
    if (node.node().attributes.contains("scales")) return false;  // of old opsets, whatever its inputs say
    const bool old = node.node().op == "Upsample" || node.size() == 2;
    const int scales = node.node().Input(old ? 1 : 2);
    if (scales != kNoValue && graph_.IsConstant(scales) && graph_.values[scales].constant->elements() > 0) {
      return IsAll(*graph_.values[scales].constant, 1);
    }
    if (!node.node().attributes.contains("axes")) {
      const int shape_of = node.In(3).shape_of;
      if (shape_of != kNoValue && shape_of == node.In(0).alike) return true;
    }
    return node.Has(3) && KeepsShape(node);
  }

  // All places of a dimension, in order.
  static bool TakesAll(const SymbolicNode& node) {
    const SymbolicShape* const shape = node.ShapeOf(0);
    const auto axis = shape == nullptr ? std::nullopt : node.Axis(0, shape->size());
    const auto places = node.Numbers(1);
    if (!axis || !places || node.In(1).elements->shape.size() != 1) return false;
    for (size_t i = 0; i < places->size(); ++i) {
      if ((*places)[i] != static_cast<int64_t>(i)) return false;
    }
    return (*shape)[*axis].Is(static_cast<int64_t>(places->size()));
  }

  bool ReducesNothing(const SymbolicNode& node) {
    const auto axes = node.Numbers(1);
    const bool over_none = !node.HasAxes(1) || (axes && axes->empty());
    if (over_none && node.Int("noop_with_empty_axes", 0) == 1) return true;
    return KeepsShape(node);  // with dimensions of 1 left in place
  }

  // What the node makes of what another one made of it.
  int Undone(const Node& node) {
    const Node* const maker = MakerOf(node.inputs[0]);
    if (maker == nullptr || !maker->domain.empty() || maker->Input(0) == kNoValue) return kNoValue;
    if (std::ranges::find(kInvolutions, node.op) != std::end(kInvolutions) && maker->op == node.op) {
      return maker->inputs[0];
    }
    if (node.op == "Cast" && maker->op == "Cast") return CastBack(node, *maker);
    if (node.op == "Transpose") return TransposedBack(node);
    return IsView(node) ? ReshapedBack(node) : kNoValue;
  }

  // Of a type to one that holds all its numbers, and back.
  int CastBack(const Node& node, const Node& maker) {
    const auto own = walk_.Of(maker.inputs[0]).dtype, between = TypeOfResult(walk_.At(maker), 0);
    const bool back = own && between && TypeOfResult(walk_.At(node), 0) == own && Holds(*between, *own);
    return back ? maker.inputs[0] : kNoValue;
  }

  // Through all Transposes that stand before it.
  int TransposedBack(const Node& node) {
    std::vector<int64_t> places;  // of the dimensions in what the last one reads
    for (const Node* each = &node; each != nullptr && each->op == "Transpose" && each->domain.empty();
         each = MakerOf(each->Input(0))) {
      const auto perm = IntsAttribute(*each, "perm", {});
      const auto& shape = walk_.Of(each->Input(0)).shape;
      const size_t rank = shape ? shape->size() : perm.ok() ? perm->size() : 0;
      const auto order = PermutationOf(*each, rank);
      if (!order.ok() || (!places.empty() && places.size() != rank)) return kNoValue;
      std::vector<int64_t> through;
      for (size_t i = 0; i < rank; ++i) {
        through.push_back((*order)[static_cast<size_t>(places.empty() ? static_cast<int64_t>(i) : places[i])]);
      }
      places = std::move(through);
      if (each != &node && std::ranges::is_sorted(places)) return each->Input(0);
    }
    return kNoValue;
  }

  // Whether it gives its first input's elements in another shape and the same order.
  bool IsView(const Node& node) {
    return node.op != "Transpose" && std::ranges::find(kMoveOperators, node.op) != kMoveOperators.end();
  }

  // To a shape that the elements had before, through others in the same order.
  int ReshapedBack(const Node& node) {
    const auto shape = ResultShape(walk_.At(node), 0, walk_.symbols());
    if (!shape) return kNoValue;
    for (const Node* each = MakerOf(node.inputs[0]); each != nullptr && each->domain.empty() && IsView(*each);
         each = MakerOf(each->Input(0))) {
      if (walk_.Of(each->Input(0)).shape == shape) return each->Input(0);
    }
    return kNoValue;
  }

  Graph& graph_;
  Rewriter rewriter_;
  SymbolicWalk walk_;
};

}  // namespace

StatusOr<int> RemoveNoOps(Graph& graph) { return Removal(graph).Run(); }

}  // namespace swizzle
