// What is known of a graph's values by reading it, without running anything: their types, their ranks, and what
// dimensions are numbers (shapes/symbolic_walk.h), with what a file says of those values that this tells nothing of.
// What writes operators out needs it, since ONNX's Transpose and Reshape name dimensions one by one.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_VALUE_FACTS_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_VALUE_FACTS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle::expansions {

// Nothing: it is not known. Dimensions that are not known are -1.
struct ValueFact {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

// By name, what a file says of values that nodes make.
using Hints = std::map<std::string, ValueFact>;

// The graph outlives it, and may grow. Thread-compatible.
class ValueFacts {
 public:
  ValueFacts(const Graph& graph, const Hints& hints) : graph_(graph), hints_(hints), walk_(graph) {}

  // Takes in what the node makes. REQUIRES: the nodes before it were taken in.
  void Note(const Node& node);
  // The result became a constant of the graph.
  void NoteConstant(int value) { walk_.VisitConstant(value); }

  ValueFact Of(int value) const;
  // The elements, of a constant or of what a Constant node makes; null: they are not known.
  const Tensor* ConstantOf(int value) const;
  // The elements of a constant of INT64; nothing for any other value.
  std::optional<std::vector<int64_t>> WholesOf(int value) const;

 private:
  const Graph& graph_;
  const Hints& hints_;
  SymbolicWalk walk_;
  std::map<int, Tensor> constants_;  // what Constant nodes make
};

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_VALUE_FACTS_H_
