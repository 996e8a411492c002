// One walk over a graph of ONNX's operators that tells of each value what is known before it runs: its type, its shape
// in symbols, and its elements where they are made of sizes. Whatever isn't known is left open, and never guessed.
//
// What it says holds in every run that the graph gets through; only that a size which the graph computes for Reshape is
// 0 is taken to mean no elements there, though ONNX reads it as the input's own size.
#ifndef SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_WALK_H_
#define SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_WALK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/shapes/symbolic_int.h"

namespace swizzle {

using SymbolicShape = std::vector<SymbolicInt>;
// The walk forgets the shape of a value that has more dimensions: in a chain of Gathers each may have twice as many as
// the one before.
inline constexpr size_t kMostSymbolicRank = 16;

// A few whole numbers, row-major; of more than these it is not followed what they are. Value type.
inline constexpr int64_t kMostSymbolicElements = 64;
struct SymbolicElements {
  Shape shape;
  std::vector<SymbolicInt> values;
};

// What is known of one value. Value type.
struct SymbolicValue {
  std::optional<DType> dtype = {};
  std::optional<SymbolicShape> shape = {};        // nothing: not even how many dimensions it has
  int alike = kNoValue;                           // values of the same have the same shape, be it known or not
  std::optional<SymbolicElements> elements = {};  // of INT64, INT32 and BOOL
  int shape_of = kNoValue;                        // the elements are the shape of the values that are alike so
};

// A node with what is known of its inputs. Refers to what it is made of.
class SymbolicNode {
 public:
  SymbolicNode(const Node& node, const Graph& graph, const std::vector<SymbolicValue>& values)
      : node_(node), graph_(graph), values_(values) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return graph_.opset; }
  size_t size() const { return node_.inputs.size(); }
  bool Has(size_t i) const { return node_.Input(i) != kNoValue; }
  // Whether the operator is ONNX's own, and no input is left out that it needs. All below is for such.
  bool HasRequired() const;
  const SymbolicValue& In(size_t i) const;
  // The elements of an input of FP32 that is a constant.
  std::optional<std::span<const float>> Floats(size_t i) const;
  // Null where its rank is not known.
  const SymbolicShape* ShapeOf(size_t i) const { return In(i).shape ? &*In(i).shape : nullptr; }
  // Of a list or a single one.
  std::optional<std::vector<SymbolicInt>> List(size_t i) const;
  // Likewise, all of them numbers.
  std::optional<std::vector<int64_t>> Numbers(size_t i) const;
  // From input `i` or the attribute "axes", counted from the front, ascending; nothing where they are neither given nor
  // known.
  std::optional<std::vector<int64_t>> Axes(size_t i, size_t rank) const;
  // Whether they are given at all.
  bool HasAxes(size_t i) const { return Has(i) || node_.attributes.contains("axes"); }
  // The attribute "axis", counted from the front.
  std::optional<size_t> Axis(int64_t absent, size_t rank) const;
  std::optional<int64_t> Int(const std::string& name, int64_t absent) const;
  // Nothing where the attribute is of another type, or has another number of elements.
  std::optional<std::vector<int64_t>> Ints(const std::string& name, size_t count, int64_t absent) const;

 private:
  const Node& node_;
  const Graph& graph_;
  const std::vector<SymbolicValue>& values_;
};

// Single-owner. The graph outlives it, and may grow, and change but for what was visited.
class SymbolicWalk {
 public:
  // What is known of dimension 0 of the graph's inputs.
  enum class Inputs : uint8_t {
    kApart,    // what each declares
    kOneBatch  // it is as large in all of them; batch() stands for it, and varies
  };
  explicit SymbolicWalk(const Graph& graph, Inputs inputs = Inputs::kApart);

  // REQUIRES: what makes the node's inputs has been visited.
  void Visit(const Node& node);
  // Somebody else says this of a value, and it is taken for true in so far as nothing else is known. Dimensions below 0
  // are open. REQUIRES: the node that makes the value, if there is one, has been visited.
  void Suppose(int value, std::optional<DType> dtype, const std::optional<Shape>& shape);
  // The value has this shape, whatever is known of it. REQUIRES: as above.
  void SetShape(int value, SymbolicShape shape) { values_[static_cast<size_t>(value)].shape = std::move(shape); }
  // The value's elements, where they are a few whole numbers of which nothing is known, become symbols, a number each.
  // REQUIRES: as above.
  void NameElements(int value);
  // The value has become a constant. REQUIRES: the graph had it when a node was visited last.
  void VisitConstant(int value);
  // Nothing is known of kNoValue.
  const SymbolicValue& Of(int value) const;
  SymbolicNode At(const Node& node) const { return {node, graph_, values_}; }
  Symbols& symbols() { return symbols_; }
  const SymbolicInt& batch() const { return batch_; }

 private:
  void VisitOutput(const SymbolicNode& node, size_t output);
  void Grow();

  const Graph& graph_;
  Symbols symbols_;
  SymbolicInt batch_;
  std::vector<SymbolicValue> values_;  // by value of the graph
};

// What the walk is made of (symbolic_rules.cc, symbolic_moves.cc, symbolic_elements.cc), for nodes of ONNX's own
// domain.
//
// The shape of one of the node's outputs; nothing where its rank is not known.
std::optional<SymbolicShape> ResultShape(const SymbolicNode& node, size_t output, Symbols& symbols);
// MovedShape says so for operators that move elements.
std::optional<SymbolicShape> MovedShape(const SymbolicNode& node, size_t output, Symbols& symbols);
// The input whose shape the node's first output has, whatever that is.
std::optional<size_t> ShapeSource(const SymbolicNode& node);
// The type of one of the node's outputs.
std::optional<DType> TypeOfResult(const SymbolicNode& node, size_t output);
// The elements of the node's first output.
std::optional<SymbolicElements> ResultElements(const SymbolicNode& node, Symbols& symbols);

// What Slice is told; nothing where that, or the rank of what it slices, is not known.
std::optional<SliceArguments<SymbolicInt>> SliceOf(const SymbolicNode& node);
// Whether a slice from `start` to `end` is certainly the whole of a dimension.
bool TakesAll(const SymbolicInt& size, const SymbolicInt& start, const SymbolicInt& end, int64_t step);
// What Pad adds before all dimensions, and then behind all of them; nothing likewise.
std::optional<std::vector<SymbolicInt>> PadsOf(const SymbolicNode& node);
// The scales of Resize or Upsample, one for each dimension, where they are constant and alone say how large the result
// is.
std::optional<std::span<const float>> ScalesOf(const SymbolicNode& node);
// What both broadcast to.
SymbolicShape BroadcastSymbols(const SymbolicShape& a, const SymbolicShape& b, Symbols& symbols);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SHAPES_SYMBOLIC_WALK_H_
