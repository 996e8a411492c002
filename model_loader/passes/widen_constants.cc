#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/affine.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/tensor_arithmetic.h"

namespace swizzle {
namespace {

// Than as weights, and as what shapes are computed in.
bool IsStoredOtherwise(DType dtype) {
  return dtype != DType::kFloat32 && dtype != DType::kInt32 && dtype != DType::kUint32 && IsExactInDouble(dtype);
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), rewriter_(graph) {
    int64_t held = 0;
    for (const Value& value : graph.values) held += value.constant ? value.constant->elements() : 0;
    constexpr int64_t kMostTimes = 8, kFree = int64_t{1} << 24;
    budget_ = kMostTimes * held + kFree;
  }

  int Run() {
    int count = 0;
    for (int i = 0, given = rewriter_.node_count(); i < given; ++i) {
      if (rewriter_.IsErased(i) || !rewriter_.node(i).domain.empty() || rewriter_.node(i).outputs.empty()) continue;
      if (Fold(i) || Sink(i)) ++count;
    }
    if (count > 0) rewriter_.Finish();
    return count;
  }

 private:
  const Tensor& ConstantOf(int value) const { return *graph_.values[static_cast<size_t>(value)].constant; }

  // A node of constants alone, of which one is stored otherwise, or is too large for others to compute with, becomes a
  // constant.
  bool Fold(int index) {
    const Node& node = rewriter_.node(index);
    const bool known = !node.inputs.empty() && std::ranges::all_of(node.inputs, [&](int input) {
      return input == kNoValue || graph_.IsConstant(input);
    });
    if (!known || node.inputs[0] == kNoValue || node.outputs[0] == kNoValue) return false;
    const bool concerned = std::ranges::any_of(node.inputs, [&](int input) {
      return input != kNoValue && (IsStoredOtherwise(ConstantOf(input).dtype) || widened_.contains(input) ||
                                   ConstantOf(input).elements() > kMaxEvaluatedElements);
    });
    if (!concerned) return false;
    const int made = Computed(node.op, node, node.inputs);
    if (made == kNoValue) return false;
    rewriter_.ReplaceReads(node.outputs[0], made);
    rewriter_.Erase(index);
    return true;
  }

  // What `op`, with the attributes of `node`, makes of these constants, which are one however often it is asked for;
  // kNoValue where that is not computed here, or enough was.
  int Computed(const std::string& op, const Node& node, const std::vector<int>& inputs) {
    const auto [made, is_new] = made_.try_emplace({op, PrintedAttributes(node), inputs}, kNoValue);
    if (!is_new) return made->second;
    int64_t most = 0;
    for (const int input : inputs) most = std::max(most, input == kNoValue ? 0 : ConstantOf(input).elements());
    if (most > budget_) return kNoValue;
    std::optional<Tensor> tensor = Compute(op, node, inputs);
    if (!tensor) return kNoValue;
    budget_ -= tensor->elements();
    made->second = graph_.AddConstant(graph_.values[static_cast<size_t>(inputs[0])].name, *std::move(tensor));
    widened_.insert(made->second);
    return made->second;
  }

  // As far as operators that are computed here have any.
  static std::vector<int64_t> PrintedAttributes(const Node& node) {
    std::vector<int64_t> printed;
    for (const char* name : {"to", "axis"}) printed.push_back(IntAttribute(node, name, 1).value_or(0));
    const auto permutation = IntsAttribute(node, "perm", {});
    if (permutation.ok()) printed.insert(printed.end(), permutation->begin(), permutation->end());
    return printed;
  }

  std::optional<Tensor> Compute(const std::string& op, const Node& node, const std::vector<int>& inputs) const {
    const Tensor& first = ConstantOf(inputs[0]);
    if (!std::ranges::all_of(inputs, [&](int v) { return v == kNoValue || IsExactInDouble(ConstantOf(v).dtype); })) {
      return std::nullopt;
    }
    if (op == "Cast") return Cast(node, first);
    if (op == "Transpose") return Transpose(node, first);
    const bool broadcasts_as_now = node.attributes.empty();  // below opset 7 attributes say how
    if (IsArithmetic(op) && inputs.size() == 2 && broadcasts_as_now)
      return CombinedTensors(op, first, ConstantOf(inputs[1]));
    // By scales of FP32 whole numbers are remembered beside the real ones, elsewhere.
    if (op != "DequantizeLinear" || inputs.size() < 2 || ConstantOf(inputs[1]).dtype == DType::kFloat32) {
      return std::nullopt;
    }
    const auto axis = IntAttribute(node, "axis", 1);
    const bool in_blocks = node.attributes.contains("block_size");
    if (!axis.ok() || in_blocks) return std::nullopt;
    const int zeros = inputs.size() > 2 ? inputs[2] : kNoValue;
    return ScaledTensor(first, ConstantOf(inputs[1]), zeros == kNoValue ? nullptr : &ConstantOf(zeros), *axis);
  }

  static std::optional<Tensor> Cast(const Node& node, const Tensor& from) {
    const auto to = CastType(node);
    if (!to.ok()) return std::nullopt;
    const bool widens = IsStoredOtherwise(from.dtype) && !IsFloating(from.dtype) && *to == DType::kInt32;
    return IsFloating(*to) || widens ? std::optional(CastTensor(from, *to)) : std::nullopt;
  }

  static std::optional<Tensor> Transpose(const Node& node, const Tensor& from) {
    const int64_t rank = std::ssize(from.shape);
    std::vector<int64_t> reversed;
    for (int64_t d = rank; d-- > 0;) reversed.push_back(d);
    auto permutation = IntsAttribute(node, "perm", reversed);
    if (!permutation.ok()) return std::nullopt;
    std::vector<int64_t> sorted = *permutation;
    std::ranges::sort(sorted);
    std::ranges::reverse(sorted);
    return sorted == reversed ? std::optional(TransposedTensor(from, *permutation)) : std::nullopt;
  }

  // Rows of a constant, and where they are taken from.
  struct LookUp {
    int table = kNoValue, ids = kNoValue;
  };

  std::optional<LookUp> LookUpOf(int value) const {
    const int maker = rewriter_.Producer(value);
    if (maker < 0) return std::nullopt;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    if (node.op != "Gather" || !node.domain.empty() || !graph_.IsConstant(node.inputs[0])) return std::nullopt;
    const auto axis = IntAttribute(node, "axis", 0);
    if (!axis.ok() || *axis != 0 || ConstantOf(node.inputs[0]).shape.size() != 2) return std::nullopt;
    return LookUp{node.inputs[0], node.inputs[1]};
  }

  bool IsConcerned(const LookUp& rows) const {
    return IsStoredOtherwise(ConstantOf(rows.table).dtype) || widened_.contains(rows.table);
  }

  // What goes by element of rows that are taken from a constant which is stored otherwise is done to the constant.
  bool Sink(int index) {
    const Node& node = rewriter_.node(index);
    if (node.op == "Cast") {
      const auto rows = LookUpOf(node.inputs[0]);
      return rows && IsConcerned(*rows) && Becomes(index, Computed(node.op, node, {rows->table}), rows->ids);
    }
    if (node.op == "DequantizeLinear") return SinkScale(index);
    return IsArithmetic(node.op) && node.inputs.size() == 2 && SinkArithmetic(index);
  }

  // The node takes rows of `table`.
  bool Becomes(int index, int table, int ids) {
    if (table == kNoValue) return false;
    Node& node = rewriter_.node(index);
    node.op = "Gather";
    node.attributes = {{"axis", int64_t{0}}};
    graph_.values[static_cast<size_t>(node.outputs[0])].dtype = graph_.values[static_cast<size_t>(table)].dtype;
    rewriter_.SetInputs(index, {table, ids});
    return true;
  }

  bool SinkScale(int index) {
    const Node& node = rewriter_.node(index);
    const auto rows = LookUpOf(node.inputs[0]);
    if (!rows || !std::ranges::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                      [&](int input) { return input == kNoValue || graph_.IsConstant(input); })) {
      return false;
    }
    std::vector<int> inputs = node.inputs;
    inputs[0] = rows->table;
    Node scaled{node.op, "", node.name, inputs, {}, node.attributes};
    if (ConstantOf(inputs[1]).elements() != 1) {
      if (!IsLastAxis(node, rows->ids)) return false;
      scaled.attributes["axis"] = int64_t{1};
    } else {
      scaled.attributes.erase("axis");
    }
    if (const int made = Computed(scaled.op, scaled, inputs); made != kNoValue) return Becomes(index, made, rows->ids);
    if (ConstantOf(inputs[1]).dtype != DType::kFloat32) return false;
    Value value;
    value.name = graph_.values[static_cast<size_t>(rows->table)].name + ".real";
    const int real = graph_.AddValue(std::move(value));
    scaled.outputs = {real};
    rewriter_.InsertBefore(index, std::move(scaled));
    return Becomes(index, real, rows->ids);
  }

  // How many dimensions rows have that are taken by these ids, if that is known.
  std::optional<int64_t> RankOfRows(int ids) const {
    const auto& shape = graph_.values[static_cast<size_t>(ids)].shape;
    return shape ? std::optional(std::ssize(*shape) + 1) : std::nullopt;
  }

  bool IsLastAxis(const Node& node, int ids) const {
    const auto axis = IntAttribute(node, "axis", 1);
    const auto rank = RankOfRows(ids);
    return axis.ok() && (*axis == -1 || (rank && *axis == *rank - 1)) && !node.attributes.contains("block_size");
  }

  bool SinkArithmetic(int index) {
    const Node& node = rewriter_.node(index);
    const std::vector<int> given = node.inputs;
    std::array<std::optional<LookUp>, 2> rows = {LookUpOf(given[0]), LookUpOf(given[1])};
    if (rows[0] && rows[1]) {  // rows of one, by numbers that are rows of the other
      const bool same = rows[0]->ids == rows[1]->ids && (IsConcerned(*rows[0]) || IsConcerned(*rows[1]));
      return same && Becomes(index, Computed(node.op, node, {rows[0]->table, rows[1]->table}), rows[0]->ids);
    }
    const size_t at = rows[0] ? 0 : 1;
    if (!rows[at] || !IsConcerned(*rows[at]) || !graph_.IsConstant(given[1 - at])) return false;
    const int beside = ForEachRow(given[1 - at], *rows[at]);
    if (beside == kNoValue) return false;
    std::vector<int> inputs = {beside, beside};
    inputs[at] = rows[at]->table;
    return Becomes(index, Computed(node.op, node, inputs), rows[at]->ids);
  }

  // The constant as it goes with each row of a table: one number, or as many as a row has; kNoValue where it is
  // otherwise, or gives rows more dimensions.
  int ForEachRow(int constant, const LookUp& rows) {
    const Tensor& tensor = ConstantOf(constant);
    const int64_t channels = ConstantOf(rows.table).shape[1];
    const bool is_number = tensor.elements() == 1;
    if (!is_number && (tensor.elements() != channels || tensor.shape.back() != channels)) return kNoValue;
    const int64_t rank = std::ssize(tensor.shape);
    if (rank > 1 && RankOfRows(rows.ids).value_or(0) < rank) return kNoValue;
    if (rank <= 1) return constant;
    const auto [made, is_new] = for_rows_.try_emplace(constant, kNoValue);
    if (!is_new) return made->second;
    Tensor flat = tensor;
    flat.shape = {flat.elements()};
    return made->second = graph_.AddConstant(graph_.values[static_cast<size_t>(constant)].name, std::move(flat));
  }

  Graph& graph_;
  Rewriter rewriter_;
  int64_t budget_ = 0;     // elements of constants that may still be made
  std::set<int> widened_;  // constants that were made here
  std::map<int, int> for_rows_;
  std::map<std::tuple<std::string, std::vector<int64_t>, std::vector<int>>, int> made_;
};

}  // namespace

StatusOr<int> WidenConstants(Graph& graph) { return Widening(graph).Run(); }

}  // namespace swizzle
