#include "model_loader/graph/verify.h"

#include <set>

#include "model_loader/graph/operator_table.h"

namespace swizzle {
namespace {

Status VerifyConstant(const Value& value) {
  const Tensor& tensor = *value.constant;
  if (tensor.dtype != value.dtype || value.shape != tensor.shape) {
    return InvalidArgument("constant '", value.name, "' has another type or shape than its value");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(tensor.shape));
  if (elements * static_cast<int64_t>(ElementBytes(tensor.dtype)) != static_cast<int64_t>(tensor.bytes.size())) {
    return InvalidArgument("constant '", value.name, "' has ", tensor.bytes.size(), " bytes for ", elements,
                           " elements of ", DTypeName(tensor.dtype));
  }
  return {};
}

Status VerifyShape(const Value& value, bool any_free) {
  for (size_t i = 0; value.shape && i < value.shape->size(); ++i) {
    const int64_t dimension = (*value.shape)[i];
    if (dimension >= 0 || (dimension == kFreeBatch && (i == 0 || any_free))) continue;
    return InvalidArgument("value '", value.name, "' has shape ", ShapeText(*value.shape),
                           "; only dimension 0 may be free");
  }
  return {};
}

class Verifier {
 public:
  Verifier(const Graph& graph, OperatorFinder find, bool any_free)
      : graph_(graph), find_(find), any_free_(any_free), made_(graph.values.size(), false) {}

  Status Run() {
    for (const Value& value : graph_.values) SWIZZLE_RETURN_IF_ERROR(VerifyValue(value));
    for (int input : graph_.inputs) SWIZZLE_RETURN_IF_ERROR(Make(input, "the graph's inputs"));
    for (const Node& node : graph_.nodes) SWIZZLE_RETURN_IF_ERROR(VerifyNode(node));
    return VerifyOutputs();
  }

 private:
  Status VerifyValue(const Value& value) const {
    SWIZZLE_RETURN_IF_ERROR(VerifyShape(value, any_free_));
    return value.constant ? VerifyConstant(value) : Status();
  }

  bool InRange(int value) const { return value >= 0 && static_cast<size_t>(value) < graph_.values.size(); }

  // Whether something stands behind the value at this point of the walk.
  bool IsAvailable(int value) const { return made_[value] || graph_.values[value].constant.has_value(); }

  Status Make(int value, const std::string& maker) {
    if (!InRange(value)) return InvalidArgument(maker, ": value ", value, " does not exist");
    if (IsAvailable(value)) return InvalidArgument(maker, ": '", graph_.values[value].name, "' is made twice");
    made_[value] = true;
    return {};
  }

  Status VerifyNode(const Node& node) {
    if (node.name.empty()) return InvalidArgument("a ", node.op, " node has no name");
    SWIZZLE_RETURN_IF_ERROR(VerifyArity(node));
    for (int input : node.inputs) {
      if (input == kNoValue) continue;
      if (!InRange(input)) return InvalidArgument(Describe(node), ": value ", input, " does not exist");
      if (!IsAvailable(input)) {
        return InvalidArgument(Describe(node), " reads '", graph_.values[input].name,
                               "', which nothing before it makes");
      }
    }
    for (int output : node.outputs) {
      if (output != kNoValue) SWIZZLE_RETURN_IF_ERROR(Make(output, Describe(node)));
    }
    return {};
  }

  Status VerifyArity(const Node& node) const {
    const OperatorSpec* spec = find_(node.domain, node.op);
    if (spec == nullptr) return InvalidArgument(Describe(node), " has an operator that is not known");
    const int inputs = static_cast<int>(node.inputs.size());
    if (inputs < spec->min_inputs || inputs > spec->max_inputs) {
      return InvalidArgument(Describe(node), " has ", inputs, " inputs");
    }
    const bool by_position = Is(node, "Embedding");  // may lack its ids
    for (int i = by_position ? 1 : 0; i < spec->min_inputs; ++i) {
      if (node.inputs[i] == kNoValue) return InvalidArgument(Describe(node), " lacks its input ", i);
    }
    if (node.outputs.empty() || static_cast<int>(node.outputs.size()) > spec->max_outputs) {
      return InvalidArgument(Describe(node), " has ", node.outputs.size(), " outputs");
    }
    return {};
  }

  Status VerifyOutputs() const {
    std::set<std::string> names;
    for (const GraphOutput& output : graph_.outputs) {
      if (output.name.empty()) return InvalidArgument("a graph output has no name");
      if (!names.insert(output.name).second) return InvalidArgument("graph output '", output.name, "' is listed twice");
      if (!InRange(output.value) || !IsAvailable(output.value)) {
        return InvalidArgument("graph output '", output.name, "' is made by nothing");
      }
    }
    return {};
  }

  const Graph& graph_;
  const OperatorFinder find_;
  const bool any_free_;
  std::vector<bool> made_;  // by value
};

}  // namespace

Status Verify(const Graph& graph) { return Verifier(graph, FindOperator, /*any_free=*/false).Run(); }

Status VerifyAnyShape(const Graph& graph, OperatorFinder find) {
  return Verifier(graph, find, /*any_free=*/true).Run();
}

}  // namespace swizzle
