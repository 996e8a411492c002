#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"

namespace swizzle {
namespace {

StatusOr<Tensor> ConstantOf(const Node& node) {
  if (node.attributes.size() != 1) {
    return InvalidArgument(Describe(node), " has ", node.attributes.size(), " values instead of 1");
  }
  const Attribute& value = node.attributes.begin()->second;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* real = std::get_if<float>(&value)) return Tensor::Floats({}, std::span(real, 1));
  if (const auto* whole = std::get_if<int64_t>(&value)) return Tensor::Int64s({}, std::span(whole, 1));
  if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
    return Tensor::Floats({static_cast<int64_t>(reals->size())}, *reals);
  }
  if (const auto* wholes = std::get_if<std::vector<int64_t>>(&value)) {
    return Tensor::Int64s({static_cast<int64_t>(wholes->size())}, *wholes);
  }
  return InvalidArgument(Describe(node), " has a value of the wrong type");
}

}  // namespace

StatusOr<int> ResolveConstants(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    const Node& node = rewriter.node(i);
    if (node.op != "Constant" || !node.domain.empty() || node.outputs.empty()) continue;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ConstantOf(node));
    const int output = node.outputs[0];
    if (output != kNoValue) {
      rewriter.ReplaceReads(output, graph.AddConstant(graph.values[output].name, std::move(tensor)));
    }
    rewriter.Erase(i);
    ++count;
  }
  if (count > 0) rewriter.Finish();
  return count;
}

}  // namespace swizzle
