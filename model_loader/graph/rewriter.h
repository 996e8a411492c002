// Edits a graph while keeping count of who makes and who reads each value.
//
// A pass makes one Rewriter, walks the nodes by index, edits through it, and calls Finish() at the end. Until then
// nodes keep their indices: erased ones stay behind without inputs and outputs. Single-owner; the graph must outlive it
// and may be changed otherwise only as the methods say.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_REWRITER_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_REWRITER_H_

#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

class Rewriter {
 public:
  // REQUIRES: Verify(graph) is OK.
  explicit Rewriter(Graph& graph);

  Graph& graph() { return graph_; }
  // As at the start; rewritten nodes keep their place.
  int node_count() const { return static_cast<int>(graph_.nodes.size()); }
  // Change op, attributes and name at will, inputs only through SetInputs, outputs only through TakeOutput.
  Node& node(int index) { return graph_.nodes[index]; }
  bool IsErased(int index) const { return erased_[index]; }

  // The node that makes the value; -1 for constants, graph inputs and kNoValue.
  int Producer(int value) const { return InTables(value) ? producer_[value] : -1; }
  // The one node that reads the value, once; -1 if there are other readers or it is a graph output.
  int SoleReader(int value) const;
  // Nodes that read the value, once for each time they do.
  const std::vector<int>& Readers(int value) const { return readers_[value]; }
  bool IsGraphOutput(int value) const;

  // Constants added since the start may be named too.
  void SetInputs(int index, std::vector<int> inputs);
  // Everything that read `from`, graph outputs included, reads `to`.
  void ReplaceReads(int from, int to);
  // The node, whose outputs no other makes, gets an index of its own, behind all others', but comes to stand before
  // node `index`, behind those that were put there earlier. References to nodes are no longer valid.
  int InsertBefore(int index, Node node);
  // Node `index` makes, as its first output, what node `other` made; `other` is erased.
  void TakeOutput(int index, int other);
  // REQUIRES: nobody reads its outputs any more.
  void Erase(int index);

  // Removes erased nodes, nodes whose outputs nobody reads, and values that are left without use; renumbers the rest in
  // order. Graph inputs stay. The rewriter is of no use afterwards.
  void Finish();

 private:
  bool InTables(int value) const { return value >= 0 && static_cast<size_t>(value) < producer_.size(); }
  void GrowTables();
  void RemoveReads(int index);
  std::vector<int> Order() const;
  void EraseDeadNodes();
  void DropUnusedValues();

  Graph& graph_;
  std::vector<bool> erased_;               // by node
  std::vector<int> places_;                // by node: itself, or the one before which it stands
  std::vector<int> producer_;              // by value
  std::vector<std::vector<int>> readers_;  // by value
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_REWRITER_H_
