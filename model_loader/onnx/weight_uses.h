// How the nodes of an ONNX graph, and of graphs within nodes, use its constants: which ones are weights that can be
// edited, and which ones layers multiply with although they cannot. Internal to model_loader/onnx. Immutable.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_USES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_USES_H_

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/onnx.pb.h"

namespace swizzle {

// Constant nodes with a tensor, dense or sparse, or without inputs at all.
bool IsConstantNode(const onnx::NodeProto& node);

// Of one initializer or Constant node.
struct WeightUse {
  std::string name;                              // its own: the initializer's, or the output's
  std::vector<std::string> nodes;                // layers that multiply with it and have names
  int layers = 0;                                // that multiply with it
  bool outputs_last = false, both_ways = false;  // as of OnnxWeight
  bool on_the_left = false;                      // of a MatMul: then it is a matrix, no stack of them
  bool is_indirect = false;                      // as of OnnxWeight
  std::string obstacle;                          // why it is no weight to edit, such as "Gather node 'x' reads it, too"
};

class WeightUses {
 public:
  // `graph` outlives it, and its tensors stay where they are.
  explicit WeightUses(const onnx::GraphProto& graph);

  // Null for a constant, of so many dimensions, that is not a weight. `constant`: a TensorProto or SparseTensorProto.
  const WeightUse* Find(const void* constant, int rank) const;

  // What layers multiply with and what is no weight to edit, as messages name it: "'w' (behind Mul node 'scale')".
  std::vector<std::string> Unseen() const;

 private:
  // What a value is: a constant, perhaps turned, or something that was computed of one.
  struct Source {
    const void* constant = nullptr;
    int rank = 0;
    bool is_float = false;  // FP32, or a type whose elements FP32 holds
    bool is_scalar = false;
    bool is_turned = false;
    bool is_indirect = false;
    std::string behind = {};  // the operator that computed it; empty: it is the constant's elements
  };
  using Scope = std::unordered_map<std::string, Source>;

  void VisitGraph(const onnx::GraphProto& graph);
  void VisitNode(const onnx::NodeProto& node);
  void VisitGraphsWithin(const onnx::NodeProto& node);
  template <typename Constant>
  void AddConstant(const std::string& name, const Constant& constant, bool is_float);
  const Source* SourceOf(const std::string& value) const;
  bool FollowNode(const onnx::NodeProto& node);
  void ReadAsWeight(const onnx::NodeProto& node, int input, const Source& source);
  void ReadOtherwise(const std::string& reader, const Source& source);
  void MarkComputed(const onnx::NodeProto& node);

  std::vector<Scope> scopes_;  // of the graphs that are visited, the innermost last
  std::unordered_map<const void*, WeightUse> uses_;
  std::vector<const void*> order_;  // as they were found
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_WEIGHT_USES_H_
