#include "model_loader/onnx/weight_uses.h"

#include <algorithm>
#include <utility>

#include "model_loader/onnx/proto_values.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

using onnx::NodeProto;
using onnx::TensorProto;

int64_t GroupOf(const NodeProto& conv) {
  for (const auto& attribute : conv.attribute()) {
    if (attribute.name() == "group") return attribute.i();
  }
  return 1;
}

bool IsWeightInput(const NodeProto& node, int input) {
  if (!IsDefaultDomain(node.domain())) return false;
  if (node.op_type() == "Conv") return input == 1 && GroupOf(node) == 1;
  if (node.op_type() == "Gemm") return input == 1;
  return node.op_type() == "MatMul";
}

bool HasOutputsLast(const NodeProto& node, int input) {
  if (node.op_type() == "MatMul") return input == 1;
  if (node.op_type() != "Gemm") return false;
  const auto turned = [](const auto& attribute) { return attribute.name() == "transB" && attribute.i() != 0; };
  return std::none_of(node.attribute().begin(), node.attribute().end(), turned);
}

// "Mul node 'scale'".
std::string NodeText(const NodeProto& node) {
  std::string text = QuotedName(node.op_type());
  text = text.substr(1, text.size() - 2);
  return node.name().empty() ? Concat("a node ", text) : Concat(text, " node ", QuotedName(node.name()));
}

bool IsHeldByFloats(int type) {
  switch (type) {
    case TensorProto::FLOAT:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::INT16:
      return true;
    default:
      return false;
  }
}

bool CastsToReal(const NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != "to") continue;
    const auto to = ElementTypeOf(attribute.i());
    return to.ok() && IsFloating(*to);
  }
  return false;
}

// Of a matrix.
bool SwapsDimensions(const NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "perm") return attribute.ints_size() == 2 && attribute.ints(0) == 1;
  }
  return true;
}

bool IsOneElement(const google::protobuf::RepeatedField<int64_t>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; });
}

}  // namespace

bool IsConstantNode(const NodeProto& node) {
  return node.op_type() == "Constant" && IsDefaultDomain(node.domain()) && node.input_size() == 0 &&
         node.output_size() == 1;
}

WeightUses::WeightUses(const onnx::GraphProto& graph) { VisitGraph(graph); }

const WeightUse* WeightUses::Find(const void* constant, int rank) const {
  const auto found = uses_.find(constant);
  if (found == uses_.end() || found->second.layers == 0 || !found->second.obstacle.empty()) return nullptr;
  return rank >= 2 && (rank == 2 || !found->second.on_the_left) ? &found->second : nullptr;
}

std::vector<std::string> WeightUses::Unseen() const {
  std::vector<std::string> unseen;
  for (const void* constant : order_) {
    const WeightUse& use = uses_.at(constant);
    if (use.layers == 0 || use.obstacle.empty()) continue;
    unseen.push_back(Concat(QuotedName(use.name), " (", use.obstacle, ")"));
  }
  return unseen;
}

void WeightUses::VisitGraph(const onnx::GraphProto& graph) {
  scopes_.emplace_back();
  for (const auto& dense : graph.initializer()) AddConstant(dense.name(), dense, IsHeldByFloats(dense.data_type()));
  for (const auto& sparse : graph.sparse_initializer()) {
    AddConstant(sparse.values().name(), sparse, sparse.values().data_type() == TensorProto::FLOAT);
  }
  for (const auto& node : graph.node()) VisitNode(node);
  for (const auto& output : graph.output()) {
    if (const Source* const source = SourceOf(output.name()))
      ReadOtherwise("an output of the graph is it, too", *source);
  }
  scopes_.pop_back();
}

template <typename Constant>
void WeightUses::AddConstant(const std::string& name, const Constant& constant, bool is_float) {
  const bool is_nested = scopes_.size() > 1;
  scopes_.back()[name] = {.constant = &constant,
                          .rank = constant.dims_size(),
                          .is_float = is_float,
                          .is_scalar = IsOneElement(constant.dims()),
                          .is_indirect = is_nested};
  uses_[&constant].name = name;
  order_.push_back(&constant);
}

const WeightUses::Source* WeightUses::SourceOf(const std::string& value) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(value); found != scope->end()) return &found->second;
  }
  return nullptr;
}

void WeightUses::VisitNode(const NodeProto& node) {
  if (IsConstantNode(node)) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t()) AddConstant(node.output(0), attribute.t(), IsHeldByFloats(attribute.t().data_type()));
      if (!attribute.has_sparse_tensor()) continue;
      const auto& sparse = attribute.sparse_tensor();
      AddConstant(node.output(0), sparse, sparse.values().data_type() == TensorProto::FLOAT);
    }
    return;
  }
  if (FollowNode(node)) return;
  bool is_layer = false;
  for (int i = 0; i < node.input_size(); ++i) {
    const Source* const source = SourceOf(node.input(i));
    is_layer |= IsWeightInput(node, i);
    if (source == nullptr) continue;
    if (IsWeightInput(node, i)) {
      ReadAsWeight(node, i, *source);
    } else {
      ReadOtherwise(Concat(NodeText(node), " reads it, too"), *source);
    }
  }
  if (!is_layer) MarkComputed(node);
  VisitGraphsWithin(node);
}

// What gives on a constant's elements, where it does: they may stand in other places, or be of another type or scale.
bool WeightUses::FollowNode(const NodeProto& node) {
  if (!IsDefaultDomain(node.domain()) || node.input_size() == 0 || node.output_size() != 1) return false;
  const std::string& op = node.op_type();
  const Source* found = SourceOf(node.input(0));
  const Source* factor = node.input_size() == 2 ? SourceOf(node.input(1)) : nullptr;
  if (op == "Mul" && found != nullptr && found->is_scalar) std::swap(found, factor);
  if (found == nullptr || !found->behind.empty()) return false;
  Source source = *found;
  if (op == "Transpose" && source.rank == 2 && node.input_size() == 1) {
    source.is_turned ^= SwapsDimensions(node);
  } else if (op == "Mul" || op == "Div") {
    if (source.rank < 2 || factor == nullptr || !factor->is_scalar || factor->rank > source.rank) return false;
  } else if (op == "Cast") {
    if (!source.is_float || !CastsToReal(node)) return false;
  } else if (op != "Identity" || node.input_size() != 1) {
    return false;
  }
  source.is_indirect |= op != "Identity";
  scopes_.back()[node.output(0)] = std::move(source);
  return true;
}

void WeightUses::ReadAsWeight(const NodeProto& node, int input, const Source& source) {
  WeightUse& use = uses_[source.constant];
  if (!source.behind.empty() && use.obstacle.empty()) use.obstacle = "behind " + source.behind;
  if (!node.name().empty()) use.nodes.push_back(node.name());
  const bool outputs_last = HasOutputsLast(node, input) != source.is_turned;
  if (use.layers++ == 0) use.outputs_last = outputs_last;
  use.both_ways |= use.outputs_last != outputs_last;
  use.on_the_left |= input == 0;
  use.is_indirect |= source.is_indirect || scopes_.size() > 1;
  if (use.is_indirect && !source.is_float && use.obstacle.empty()) use.obstacle = "of a type that FP32 does not hold";
}

void WeightUses::ReadOtherwise(const std::string& reader, const Source& source) {
  WeightUse& use = uses_[source.constant];
  if (use.obstacle.empty()) use.obstacle = reader;
}

// What is computed of constants alone is one, too, behind the node: of the one with the most dimensions.
void WeightUses::MarkComputed(const NodeProto& node) {
  const Source* largest = nullptr;
  for (const std::string& input : node.input()) {
    const Source* const source = input.empty() ? nullptr : SourceOf(input);
    if (source == nullptr && !input.empty()) return;
    if (source != nullptr && (largest == nullptr || source->rank > largest->rank)) largest = source;
  }
  if (largest == nullptr) return;
  Source computed = *largest;
  if (computed.behind.empty()) {
    computed.behind = NodeText(node);
    uses_[computed.constant].obstacle = "behind " + computed.behind;
  }
  for (const std::string& output : node.output()) scopes_.back()[output] = computed;
}

void WeightUses::VisitGraphsWithin(const NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) VisitGraph(attribute.g());
    for (const auto& graph : attribute.graphs()) VisitGraph(graph);
  }
}

}  // namespace swizzle
