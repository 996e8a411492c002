// The walk over the nodes of a sequence graph that finds out what each computes, by abstract interpretation: every
// value gets a form (forms.h), and canonical operators are emitted where forms become activations. It goes by what
// nodes do, not by how exporters arrange them. Internal to the recogniser (recognise.h). Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_

#include <string>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

class Walk {
 public:
  explicit Walk(Graph& graph) : graph_(graph), context_(graph) {}

  // The canonical graph. The one that was read is of no use afterwards.
  StatusOr<Graph> Run();
  const std::vector<std::pair<std::string, int>>& counts() const { return context_.out().counts(); }

 private:
  void CountReads();
  void AddInputs();
  Status Step(const Node& node);
  void FreeConstants(const Node& node);
  Status SetOutput(const GraphOutput& output);

  Graph& graph_;
  Context context_;
  std::vector<int> reads_;  // by value, still to come
  int64_t held_ = 0;        // elements of the constants that were read
};

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WALK_H_
