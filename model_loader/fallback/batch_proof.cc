#include "model_loader/fallback/batch_proof.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "model_loader/fallback/call.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/reshape.h"

namespace swizzle::fallback {
namespace {

// What is known of a value.
struct Fact {
  enum Kind { kUnknown, kShared, kRows } kind = kUnknown;  // kShared: the same for every batch
  int64_t rank = 0;                                        // of kRows
  const Tensor* constant = nullptr;                        // of kShared, where it is one
};

bool HasOnlyFreeBatch(const std::optional<Shape>& shape) {
  if (!shape || shape->empty() || shape->front() != -1) return false;
  return std::find(shape->begin() + 1, shape->end(), -1) == shape->end();
}

class Proof {
 public:
  explicit Proof(const Graph& graph) : graph_(graph), facts_(graph.values.size()) {}

  bool Holds() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto& constant = graph_.values[i].constant;
      if (constant) facts_[i] = {Fact::kShared, 0, &*constant};
    }
    for (const int input : graph_.inputs) {
      const std::optional<Shape>& shape = graph_.values[static_cast<size_t>(input)].shape;
      if (!HasOnlyFreeBatch(shape)) return false;
      facts_[static_cast<size_t>(input)] = {Fact::kRows, static_cast<int64_t>(shape->size())};
    }
    for (const Node& node : graph_.nodes) {
      const Fact fact = FactOf(node);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        // MaxPool's indices count from the start of the batch.
        const bool known = i == 0 || node.op != "MaxPool";
        if (node.outputs[i] != kNoValue) facts_[static_cast<size_t>(node.outputs[i])] = known ? fact : Fact();
      }
    }
    return std::all_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const GraphOutput& output) {
      return HasOnlyFreeBatch(output.shape) && facts_[static_cast<size_t>(output.value)].kind == Fact::kRows &&
             facts_[static_cast<size_t>(output.value)].rank == static_cast<int64_t>(output.shape->size());
    });
  }

 private:
  Fact In(const Node& node, size_t i) const {
    const int value = node.Input(i);
    return value == kNoValue ? Fact{Fact::kShared} : facts_[static_cast<size_t>(value)];
  }

  static Fact Rows(int64_t rank) { return {Fact::kRows, rank}; }

  // Whether all inputs from `first` on are the same for every batch.
  bool OthersAreShared(const Node& node, size_t first) const {
    for (size_t i = first; i < node.inputs.size(); ++i) {
      if (In(node, i).kind != Fact::kShared) return false;
    }
    return true;
  }

  Fact FactOf(const Node& node) const {
    if (OthersAreShared(node, 0)) return SharedFact(node);
    const Fact x = In(node, 0);
    switch (FindOnnxOperator("", node.op)->fallback.rows) {
      case RowRule::kElementwise:
        return Elementwise(node);
      case RowRule::kFirstInput:
        return x.kind == Fact::kRows && OthersAreShared(node, 1) ? x : Fact();
      case RowRule::kAxis:
        return x.kind == Fact::kRows && OthersAreShared(node, 1) ? AlongAxis(node, x) : Fact();
      case RowRule::kProduct:
        return node.op == "Gemm" ? Gemm(node) : Product(x, In(node, 1));
      case RowRule::kLookUp:
        return LookUp(node, x, In(node, 1));
      case RowRule::kShape:
        return x.kind == Fact::kRows ? NewShape(node, x) : Fact();
      case RowRule::kUnknown:
        return {};
    }
    return {};
  }

  // The result of shared inputs is shared; a Constant node's elements are known too.
  static Fact SharedFact(const Node& node) {
    const auto value = node.attributes.find("value");
    if (node.op != "Constant" || value == node.attributes.end()) return {Fact::kShared};
    return {Fact::kShared, 0, std::get_if<Tensor>(&value->second)};
  }

  // Broadcasting aligns dimensions at their end: rows stay dimension 0 if those that have rows have the same rank, and
  // nothing else reaches as far.
  Fact Elementwise(const Node& node) const {
    int64_t rank = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Fact fact = In(node, i);
      if (fact.kind == Fact::kUnknown) return {};
      if (fact.kind == Fact::kRows && rank != 0 && fact.rank != rank) return {};
      if (fact.kind == Fact::kRows) rank = fact.rank;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).kind == Fact::kShared && !StaysBelow(In(node, i), rank)) return {};
    }
    return graph_.opset < 7 && node.attributes.contains("axis") ? Fact() : Rows(rank);
  }

  static bool StaysBelow(const Fact& shared, int64_t rank) {
    if (shared.constant == nullptr) return false;
    const Shape& shape = shared.constant->shape;
    const auto length = static_cast<int64_t>(shape.size());
    return length < rank || (length == rank && shape[0] == 1);
  }

  // The elements of a small list of INT64; nothing if they aren't known.
  static std::optional<std::vector<int64_t>> ListOf(const Fact& fact) {
    if (fact.constant == nullptr || fact.constant->dtype != DType::kInt64) return std::nullopt;
    std::vector<int64_t> list(fact.constant->bytes.size() / sizeof(int64_t));
    if (!list.empty()) std::memcpy(list.data(), fact.constant->bytes.data(), fact.constant->bytes.size());
    return list;
  }

  // Axes from the attribute or input 1, counted from the front; nothing if they are neither known nor right.
  std::optional<std::vector<int64_t>> AxesOf(const Node& node, int64_t rank) const {
    std::vector<int64_t> axes;
    if (const auto found = node.attributes.find("axes"); found != node.attributes.end()) {
      const auto* list = std::get_if<std::vector<int64_t>>(&found->second);
      if (list == nullptr) return std::nullopt;
      axes = *list;
    } else {
      const auto list = ListOf(In(node, 1));
      if (!list) return std::nullopt;
      axes = *list;
    }
    const StatusOr<std::vector<int64_t>> normal = NormalAxes(std::move(axes), rank);
    if (!normal.ok() || normal->empty()) return std::nullopt;
    return *normal;
  }

  static bool IsArgument(const Node& node) { return node.op == "ArgMax" || node.op == "ArgMin"; }

  Fact AlongAxis(const Node& node, const Fact& x) const {
    const StatusOr<bool> keep = KeepsAxes(node);
    if (!keep.ok()) return {};
    if (node.op.starts_with("Reduce")) {
      const auto axes = AxesOf(node, x.rank);
      if (!axes || axes->front() == 0) return {};
      return Rows(*keep ? x.rank : x.rank - static_cast<int64_t>(axes->size()));
    }
    const bool first_is_default = IsArgument(node) || node.op == "Split";
    const StatusOr<int64_t> axis = IntAttribute(node, "axis", first_is_default ? 0 : -1);
    if (!axis.ok()) return {};
    const StatusOr<int64_t> normal = NormalAxis(*axis, x.rank);
    if (!normal.ok() || *normal == 0) return {};
    return Rows(IsArgument(node) && *keep == 0 ? x.rank - 1 : x.rank);
  }

  static Fact Product(const Fact& a, const Fact& b) {
    if (a.kind != Fact::kRows) return {};
    if (b.kind == Fact::kRows) return a.rank >= 3 && a.rank == b.rank ? a : Fact();
    const bool matrix = b.kind == Fact::kShared && b.constant != nullptr && b.constant->shape.size() == 2;
    return matrix && a.rank >= 2 ? a : Fact();
  }

  Fact Gemm(const Node& node) const {
    const StatusOr<int64_t> transposed = IntAttribute(node, "transA", 0);
    const bool rows = In(node, 0).kind == Fact::kRows && OthersAreShared(node, 1);
    const bool bias = node.Input(2) == kNoValue || StaysBelow(In(node, 2), 2);
    return rows && bias && transposed.ok() && *transposed == 0 ? Rows(2) : Fact();
  }

  Fact LookUp(const Node& node, const Fact& data, const Fact& indices) const {
    const StatusOr<int64_t> axis = IntAttribute(node, "axis", 0);
    if (!axis.ok()) return {};
    if (data.kind == Fact::kShared && data.constant != nullptr && indices.kind == Fact::kRows && *axis == 0) {
      return Rows(indices.rank + static_cast<int64_t>(data.constant->shape.size()) - 1);
    }
    if (data.kind != Fact::kRows || indices.kind != Fact::kShared || indices.constant == nullptr) return {};
    const StatusOr<int64_t> normal = NormalAxis(*axis, data.rank);
    if (!normal.ok() || *normal == 0) return {};
    return Rows(data.rank - 1 + static_cast<int64_t>(indices.constant->shape.size()));
  }

  Fact NewShape(const Node& node, const Fact& x) const {
    if (node.op == "Concat") {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (In(node, i).kind != Fact::kRows || In(node, i).rank != x.rank) return {};
      }
      const StatusOr<int64_t> axis = IntAttribute(node, "axis", 0);
      const StatusOr<int64_t> normal = axis.ok() ? NormalAxis(*axis, x.rank) : axis;
      return normal.ok() && *normal != 0 ? x : Fact();
    }
    if (!OthersAreShared(node, 1)) return {};
    if (node.op == "Flatten") {
      const StatusOr<int64_t> axis = IntAttribute(node, "axis", 1);
      return axis.ok() && (*axis == 1 || *axis == 1 - x.rank) ? Rows(2) : Fact();
    }
    if (node.op == "Transpose") {
      const StatusOr<std::vector<int64_t>> order = IntsAttribute(node, "perm", {});
      return order.ok() && !order->empty() && order->front() == 0 ? x : Fact();
    }
    if (node.op == "Reshape") {
      const auto target = ListOf(In(node, 1));
      const StatusOr<bool> allow_zero = AllowsZero(node);
      const bool keeps = target && !target->empty() && target->front() == 0 && allow_zero.ok() && !*allow_zero;
      return keeps ? Rows(static_cast<int64_t>(target->size())) : Fact();
    }
    return Squeezed(node, x);
  }

  // Squeeze and Unsqueeze.
  Fact Squeezed(const Node& node, const Fact& x) const {
    const bool removes = node.op == "Squeeze";
    auto axes = AxesOf(node, removes ? x.rank : kMaxListLength);  // an upper bound, refined below
    if (!axes || axes->front() == 0) return {};
    const auto count = static_cast<int64_t>(axes->size());
    if (!removes) axes = AxesOf(node, x.rank + count);
    if (!axes || axes->front() == 0) return {};
    return Rows(removes ? x.rank - count : x.rank + count);
  }

  const Graph& graph_;
  std::vector<Fact> facts_;  // by value
};

}  // namespace

bool RowsAreIndependent(const Graph& graph) {
  return !graph.inputs.empty() && !graph.outputs.empty() && Proof(graph).Holds();
}

}  // namespace swizzle::fallback
