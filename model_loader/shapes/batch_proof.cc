#include "model_loader/shapes/batch_proof.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/shapes/batch_rows.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {
namespace {

using Kind = Standing::Kind;

// Whether the input says by its elements how large a result is, which may go by the batch.
bool SaysSizes(const Node& node, size_t input) {
  const OperatorFacts facts = FactsOf(node.domain, node.op);
  return facts.DecidesSizes(input) && facts.IsSetting(input);
}

bool HasFreeBatch(const std::optional<Shape>& shape) { return shape && !shape->empty() && shape->front() == -1; }

class Proof {
 public:
  explicit Proof(const Graph& graph)
      : graph_(graph), walk_(graph, SymbolicWalk::Inputs::kOneBatch), standings_(graph.values.size()) {}

  std::optional<std::string> Obstacle() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].constant) standings_[i] = {Kind::kShared};
    }
    for (const int input : graph_.inputs) {
      const Value& value = graph_.values[static_cast<size_t>(input)];
      if (value.dtype == DType::kString) return Concat("input '", value.name, "' holds strings");  // rows of any length
      if (!HasFreeBatch(value.shape)) return Concat("input '", value.name, "' is declared without a free dimension 0");
      standings_[static_cast<size_t>(input)] = {Kind::kRows, 0};
    }
    for (const Node& node : graph_.nodes) Visit(node);
    for (const GraphOutput& output : graph_.outputs) {
      if (HasRowForEach(output)) continue;
      const bool is_known = standings_[static_cast<size_t>(output.value)].kind != Kind::kUnknown;
      if (!is_known && first_unknown_ != nullptr) return Concat(Describe(*first_unknown_), " may join requests");
      return Concat("output '", output.name, "' is not known to have a row for each of a batch, in dimension 0");
    }
    return std::nullopt;
  }

 private:
  bool HasRowForEach(const GraphOutput& output) const {
    const auto& shape = walk_.Of(output.value).shape;
    const bool has = standings_[static_cast<size_t>(output.value)] == Standing{Kind::kRows, 0} && shape &&
                     shape->front() == walk_.batch();
    return has && (!output.shape || (HasFreeBatch(output.shape) && shape->size() == output.shape->size()));
  }

  void Visit(const Node& node) {
    walk_.Visit(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      Standing& standing = standings_[static_cast<size_t>(node.outputs[i])] = StandingOf(node, i);
      if (standing.kind == Kind::kShared) walk_.NameElements(node.outputs[i]);
      if (standing.kind == Kind::kUnknown && first_unknown_ == nullptr) first_unknown_ = &node;
    }
  }

  Standing StandingOf(const Node& node, size_t output) {
    const BatchNode known(walk_.At(node), walk_.symbols(), standings_);
    bool says_sizes_alone = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Kind kind = known.StandingOf(i).kind;
      if (kind == Kind::kUnknown) return {};
      says_sizes_alone &= kind != Kind::kSizes || SaysSizes(node, i);
    }
    if (const auto& elements = walk_.Of(node.outputs[output]).elements) {
      const auto varies = [&](const SymbolicInt& element) { return walk_.symbols().Varies(element); };
      return {std::ranges::any_of(elements->values, varies) ? Kind::kSizes : Kind::kShared};
    }
    if (!says_sizes_alone) return {};
    if (known.AreShared(0)) return {Kind::kShared};  // of what is shared all is
    const auto rows = RowsOfResult(known, FindOnnxOperator(node.domain, node.op)->interpreter.rows, output);
    return rows && TakeRows(*rows, node.outputs[output]) ? Standing{Kind::kRows, rows->axis, rows->outer} : Standing();
  }

  // Whether the shape that the walk has of the value, or what it leaves open, is one of rows.
  bool TakeRows(const RowsAt& rows, int value) {
    const auto& walked = walk_.Of(value).shape;
    SymbolicShape shape = walked ? *walked : walk_.symbols().OfRank(rows.rank);
    if (shape.size() != rows.rank || rows.axis >= rows.rank) return false;
    if (rows.size) shape[rows.axis] = *rows.size;
    const auto times = walk_.symbols().ExactQuotient(shape[rows.axis], walk_.batch());
    bool is_certain = times && !times->Is(0) && !walk_.symbols().Varies(*times) &&
                      walk_.symbols().ExactQuotient(*times, rows.outer).has_value();
    for (size_t i = 0; i < shape.size(); ++i) is_certain &= i == rows.axis || !walk_.symbols().Varies(shape[i]);
    if (is_certain) walk_.SetShape(value, std::move(shape));
    return is_certain;
  }

  const Graph& graph_;
  SymbolicWalk walk_;
  std::vector<Standing> standings_;  // by value
  const Node* first_unknown_ = nullptr;
};

}  // namespace

std::optional<std::string> BatchObstacle(const Graph& graph) {
  if (graph.inputs.empty() || graph.outputs.empty()) return "it has no inputs or no outputs";
  return Proof(graph).Obstacle();
}

}  // namespace swizzle
