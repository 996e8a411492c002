// Functions of one variable that a graph writes out in several nodes, found by what they compute rather than by how
// exporters arrange them: GELU by its error function, or by its hyperbolic tangent (Hendrycks and Gimpel, 2016).
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_WRITTEN_FUNCTIONS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_WRITTEN_FUNCTIONS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/semantics/functions.h"

namespace swizzle {

// Who makes and who reads a graph's values.
class ValueUses {
 public:
  static constexpr int kOutside = -1;

  virtual ~ValueUses() = default;
  // The node, or kOutside.
  virtual int MakerOf(int value) const = 0;
  // Nodes, once for each time they read; kOutside may stand for an output of the graph.
  virtual std::span<const int> ReadersOf(int value) const = 0;
  // Whether it is the same in every run.
  virtual bool IsKnown(int value) const = 0;
  // The number that it is, where it is known, one FP32 element, and of rank 1 at most, so that no result has more
  // dimensions for it.
  virtual std::optional<float> Number(int value) const = 0;
};

struct WrittenFunction {
  std::vector<int> nodes;  // in order
  int input = kNoValue;    // the only one that is not a number
  int output = kNoValue;
  Function function;
};

// Single-owner. Both outlive it.
class WrittenFunctions {
 public:
  WrittenFunctions(const Graph& graph, const ValueUses& uses) : graph_(graph), uses_(uses) {}

  // What is written out around an Erf or a Tanh. What its nodes make on the way others may read, too.
  std::optional<WrittenFunction> Around(int node);

 private:
  const Node& NodeAt(int index) const { return graph_.nodes[static_cast<size_t>(index)]; }
  std::optional<double> Evaluate(int value, int x, double at, std::set<int>& nodes);
  template <typename Computed>
  bool Computes(int value, int x, const Computed& function, std::set<int>& nodes);
  std::vector<int> ValuesBefore(int index) const;

  const Graph& graph_;
  const ValueUses& uses_;
  int64_t steps_ = 10'000'000;  // that evaluating functions may still take
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_WRITTEN_FUNCTIONS_H_
