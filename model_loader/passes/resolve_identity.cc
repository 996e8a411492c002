#include <cstring>

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

// Dropout does nothing unless it is told to train; its mask says nothing then either.
Status CheckInference(Rewriter& rewriter, const Node& node) {
  const int mask = node.outputs.size() > 1 ? node.outputs[1] : kNoValue;
  if (mask != kNoValue && (!rewriter.Readers(mask).empty() || rewriter.IsGraphOutput(mask))) {
    return Unimplemented(Describe(node), ": its mask is used");
  }
  constexpr int64_t kIsTestDropped = 7;  // the opset from which on Dropout alone does nothing
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_test, IntAttribute(node, "is_test", 0));
  if (rewriter.graph().opset < kIsTestDropped && is_test == 0) {
    return Unimplemented(Describe(node), " is in training mode (is_test 0); export the model for inference");
  }
  const int training = node.Input(2);
  if (training == kNoValue) return {};
  const auto& constant = rewriter.graph().values[training].constant;
  const bool off = constant && constant->bytes.size() == 1 && constant->bytes[0] == std::byte{0};
  return off ? Status() : Unimplemented(Describe(node), " is in training mode; export the model for inference");
}

}  // namespace

StatusOr<int> ResolveIdentity(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    const Node& node = rewriter.node(i);
    int replacement = kNoValue;
    if (node.op == "Constant") {
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ConstantOf(node));
      if (node.outputs[0] != kNoValue) {
        replacement = graph.AddConstant(graph.values[node.outputs[0]].name, std::move(tensor));
      }
    } else if (node.op == "Identity" || node.op == "Dropout") {
      if (node.op == "Dropout") SWIZZLE_RETURN_IF_ERROR(CheckInference(rewriter, node));
      replacement = node.inputs[0];
    } else {
      continue;
    }
    if (node.outputs[0] != kNoValue) rewriter.ReplaceReads(node.outputs[0], replacement);
    rewriter.Erase(i);
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle
