// What holds of values' shapes in every run of a graph, in symbols (shapes/symbolic_walk.h), and of the whole numbers
// that are made of these. Single-owner; refers to nothing.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_RUN_SHAPES_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_RUN_SHAPES_H_

#include <map>
#include <optional>

#include "model_loader/interpreter/values/array.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle::regions {

// As constants of graphs have it. REQUIRES: it holds neither strings nor a sequence.
Tensor TensorOf(const interpreter::Array& array);

class RunShapes {
 public:
  // `known`: values that are the same in every run, constants among them.
  RunShapes(const Graph& graph, const std::map<int, interpreter::Array>& known);

  const std::optional<SymbolicShape>& Of(int value) const { return walk_.Of(value).shape; }
  // Whether the value's elements follow from shapes, and are the same whatever these are.
  bool AreFixed(int value) const;
  Symbols& symbols() { return walk_.symbols(); }

 private:
  const Graph graph_;
  SymbolicWalk walk_;
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_RUN_SHAPES_H_
