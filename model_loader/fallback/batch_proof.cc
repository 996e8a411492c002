#include "model_loader/fallback/batch_proof.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model_loader/fallback/array.h"
#include "model_loader/fallback/batch_facts.h"
#include "model_loader/fallback/batch_rules.h"
#include "model_loader/graph/operator_table.h"

namespace swizzle::fallback {
namespace {

// Whether the input says by its elements how large a result is, which may go by the batch.
bool SaysSizes(const Node& node, size_t input) {
  const OperatorFacts facts = FactsOf(node.domain, node.op);
  return facts.DecidesSizes(input) && facts.IsSetting(input);
}

// What a Constant node says of itself, by the attributes that it has of integers.
std::optional<BatchFact> ConstantOf(const Node& node) {
  for (const auto& [name, value] : node.attributes) {
    if (const auto* const tensor = std::get_if<Tensor>(&value)) return BatchFact::OfConstant(*tensor);
    if (const auto* const number = std::get_if<int64_t>(&value)) {
      return BatchFact::OfElements({Extent::Of(*number)}, {});
    }
    if (const auto* const list = std::get_if<std::vector<int64_t>>(&value)) {
      return BatchFact::OfList(NumbersOf(*list));
    }
  }
  return std::nullopt;
}

class Proof {
 public:
  explicit Proof(const Graph& graph) : graph_(graph), facts_(graph.values.size()) {}

  std::optional<std::string> Obstacle() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto& constant = graph_.values[i].constant;
      if (constant) facts_[i] = BatchFact::OfConstant(*constant);
    }
    for (const int input : graph_.inputs) {
      const Value& value = graph_.values[static_cast<size_t>(input)];
      if (value.dtype == DType::kString) return Concat("input '", value.name, "' holds strings");  // rows of any length
      if (!HasFreeBatch(value.shape)) return Concat("input '", value.name, "' is declared without a free dimension 0");
      facts_[static_cast<size_t>(input)] = OfInput(*value.shape);
    }
    for (const Node& node : graph_.nodes) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        BatchFact& fact = facts_[static_cast<size_t>(node.outputs[i])] = FactOf(node, i);
        if (fact.shape && !IsPossible(*fact.shape)) fact = {};
        if (!fact.known && first_unknown_ == nullptr) first_unknown_ = &node;
      }
    }
    for (const GraphOutput& output : graph_.outputs) {
      const BatchFact& fact = facts_[static_cast<size_t>(output.value)];
      const bool has_rows = fact.HasRows() && fact.shape->front() == Extent::Batch();
      const bool as_declared =
          !output.shape || (HasFreeBatch(output.shape) && has_rows && fact.shape->size() == output.shape->size());
      if (has_rows && as_declared) continue;
      if (!fact.known && first_unknown_ != nullptr) return Concat(Describe(*first_unknown_), " may join requests");
      return Concat("output '", output.name, "' is not known to have a row for each of a batch, in dimension 0");
    }
    return std::nullopt;
  }

 private:
  static bool HasFreeBatch(const std::optional<Shape>& shape) {
    return shape && !shape->empty() && shape->front() == -1;
  }

  // Otherwise no run gets past it.
  static bool IsPossible(const Extents& shape) {
    const auto below_zero = [](const Extent& size) { return size.IsNumber() && size.number < 0; };
    return shape.size() <= kMaxRank && std::ranges::none_of(shape, below_zero);
  }

  BatchFact OfInput(const Shape& shape) {
    BatchFact fact = BatchFact::OfShape(ExtentsOf(shape));
    fact.shape->front() = Extent::Batch();
    for (Extent& size : *fact.shape) size.symbol = size.IsKnown() ? 0 : ++symbols_;
    return fact;
  }

  BatchFact FactOf(const Node& node, size_t output) const {
    const NodeFacts inputs(node, graph_.opset, facts_);
    bool goes_by_batch = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!inputs.In(i).known) return {};
      goes_by_batch |= !inputs.In(i).IsShared();
    }
    if (auto constant = node.op == "Constant" ? ConstantOf(node) : std::nullopt) return *std::move(constant);
    if (auto list = ComputedList(inputs); list && output == 0) return *std::move(list);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (inputs.In(i).HasBatchElements() && !SaysSizes(node, i)) return {};
    }
    auto shape = ResultShape(inputs, FindOnnxOperator(node.domain, node.op)->fallback.rows, output);
    if (!goes_by_batch) return BatchFact::OfShape(std::move(shape));  // of what is shared all is
    return shape && GoByBatch(*shape) ? BatchFact::OfShape(std::move(shape)) : BatchFact();
  }

  const Graph& graph_;
  std::vector<BatchFact> facts_;  // by value
  int32_t symbols_ = 0;
  const Node* first_unknown_ = nullptr;
};

}  // namespace

std::optional<std::string> BatchObstacle(const Graph& graph) {
  if (graph.inputs.empty() || graph.outputs.empty()) return "it has no inputs or no outputs";
  return Proof(graph).Obstacle();
}

}  // namespace swizzle::fallback
