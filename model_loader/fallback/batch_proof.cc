#include "model_loader/fallback/batch_proof.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/fallback/call.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/equation.h"
#include "model_loader/semantics/given_axes.h"
#include "model_loader/semantics/reshape.h"

namespace swizzle::fallback {
namespace {

// What is known of a value.
struct Fact {
  enum Kind { kUnknown, kShared, kRows, kSizes } kind = kUnknown;  // kShared: the same for every batch
  int64_t rank = 0;                                                // of kRows, and of kSizes: a number or a list
  int64_t axis = 0;                                                // of kRows: the dimension of the batch
  const Tensor* constant = nullptr;                                // of kShared, where it is one
  std::vector<int64_t> sizes = {};                                 // of kSizes: its elements
};

// In place of a size: that of the batch, or some that is the same for every batch.
constexpr int64_t kBatchSize = std::numeric_limits<int64_t>::min();
constexpr int64_t kAnySize = kBatchSize + 1;

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
      if (constant) facts_[i] = {Fact::kShared, 0, 0, &*constant};
    }
    for (const int input : graph_.inputs) {
      const std::optional<Shape>& shape = graph_.values[static_cast<size_t>(input)].shape;
      const bool strings = graph_.values[static_cast<size_t>(input)].dtype == DType::kString;  // rows of any length
      if (strings || !HasOnlyFreeBatch(shape)) return false;
      facts_[static_cast<size_t>(input)] = Rows(static_cast<int64_t>(shape->size()));
    }
    for (const Node& node : graph_.nodes) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNoValue) facts_[static_cast<size_t>(node.outputs[i])] = FactOf(node, i);
      }
    }
    return std::all_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const GraphOutput& output) {
      const Fact& fact = facts_[static_cast<size_t>(output.value)];
      return HasOnlyFreeBatch(output.shape) && fact.kind == Fact::kRows && fact.axis == 0 &&
             fact.rank == static_cast<int64_t>(output.shape->size());
    });
  }

 private:
  Fact In(const Node& node, size_t i) const {
    const int value = node.Input(i);
    return value == kNoValue ? Fact{Fact::kShared} : facts_[static_cast<size_t>(value)];
  }

  static Fact Rows(int64_t rank, int64_t axis = 0) { return {Fact::kRows, rank, axis}; }

  // Whether all inputs from `first` on are the same for every batch.
  bool OthersAreShared(const Node& node, size_t first) const {
    for (size_t i = first; i < node.inputs.size(); ++i) {
      if (In(node, i).kind != Fact::kShared) return false;
    }
    return true;
  }

  Fact FactOf(const Node& node, size_t output) const {
    if (OthersAreShared(node, 0)) return SharedFact(node);
    const Fact x = In(node, 0);
    if (x.kind == Fact::kSizes && node.op != "Concat" && node.op != "ConstantOfShape") return OfSizes(node, x);
    const bool alone = x.kind == Fact::kRows && OthersAreShared(node, 1);
    switch (FindOnnxOperator(node.domain, node.op)->fallback.rows) {
      case RowRule::kElementwise:
        return Elementwise(node);
      case RowRule::kFirstInput:
        // MaxPool's indices count from the start of the batch.
        return alone && x.axis == 0 && (output == 0 || node.op != "MaxPool") ? x : Fact();
      case RowRule::kAxis:
        return alone ? AlongAxis(node, x) : Fact();
      case RowRule::kProduct:
        return node.op == "Gemm" ? Gemm(node) : Product(x, In(node, 1));
      case RowRule::kLookUp:
        return LookUp(node, x, In(node, 1));
      case RowRule::kShape:
        return x.kind == Fact::kRows ? NewShape(node, x) : Joined(node);
      case RowRule::kAllInputs:
        return AllInputs(node) ? x : Fact();
      case RowRule::kEquation:
        return OfEquation(node);
      case RowRule::kRecurrent:
        return Recurrent(node, output);
      case RowRule::kSizes:
        if (node.op == "Shape") return alone ? SizesOf(node, x) : Fact();
        return node.op == "Expand" ? Expanded(x, In(node, 1)) : Filled(x);
      case RowRule::kUnknown:
        return {};
    }
    return {};
  }

  // The result of shared inputs is shared; a Constant node's elements are known too.
  static Fact SharedFact(const Node& node) {
    const auto value = node.attributes.find("value");
    if (node.op != "Constant" || value == node.attributes.end()) return {Fact::kShared};
    return {Fact::kShared, 0, 0, std::get_if<Tensor>(&value->second)};
  }

  // Broadcasting aligns dimensions at their end: rows stay where they are if those that have rows have the same rank,
  // and nothing else reaches as far.
  Fact Elementwise(const Node& node) const {
    std::optional<Fact> rows;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Fact fact = In(node, i);
      if (fact.kind == Fact::kShared) continue;
      if (fact.kind != Fact::kRows || (rows && (fact.rank != rows->rank || fact.axis != rows->axis))) return {};
      rows = fact;
    }
    if (!rows) return {};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).kind == Fact::kShared && !StaysBelow(In(node, i), *rows)) return {};
    }
    return graph_.opset < 7 && node.attributes.contains("axis") ? Fact() : *rows;
  }

  // Whether the shared value is the same for all rows. What has more dimensions would move the rows'.
  static bool StaysBelow(const Fact& shared, const Fact& rows) {
    if (shared.constant == nullptr) return false;
    const Shape& shape = shared.constant->shape;
    const auto length = static_cast<int64_t>(shape.size());
    const int64_t place = length - (rows.rank - rows.axis);
    return length <= rows.rank && (place < 0 || shape[static_cast<size_t>(place)] == 1);
  }

  // The elements of a small list of INT64; nothing if they aren't known.
  static std::optional<std::vector<int64_t>> ListOf(const Fact& fact) {
    if (fact.constant == nullptr || fact.constant->dtype != DType::kInt64) return std::nullopt;
    std::vector<int64_t> list(fact.constant->bytes.size() / sizeof(int64_t));
    if (!list.empty()) std::memcpy(list.data(), fact.constant->bytes.data(), fact.constant->bytes.size());
    return list;
  }

  // Axes from input 1 or the attribute, counted from the front; nothing if they are neither known nor right.
  std::optional<std::vector<int64_t>> AxesOf(const Node& node, int64_t rank) const {
    const auto of_input = [&]() -> StatusOr<std::vector<int64_t>> {
      if (auto list = ListOf(In(node, 1))) return *std::move(list);
      return InvalidArgument("its axes are not known");
    };
    const auto axes = GivenAxes(node, node.Input(1) != kNoValue, of_input);
    if (!axes.ok() || !*axes) return std::nullopt;
    const StatusOr<std::vector<int64_t>> normal = NormalAxes(**axes, rank);
    if (!normal.ok() || normal->empty()) return std::nullopt;
    return *normal;
  }

  static bool IsArgument(const Node& node) { return node.op == "ArgMax" || node.op == "ArgMin"; }

  // How many axes lie before the rows'.
  static int64_t Before(const std::vector<int64_t>& axes, const Fact& x) {
    return std::ranges::count_if(axes, [&](int64_t axis) { return axis < x.axis; });
  }

  // Whether the node works on all dimensions from its axis on.
  bool FromAxisOn(const Node& node) const {
    const bool softmax = node.op.ends_with("oftmax") || node.op == "Hardmax";
    return node.op.ends_with("LayerNormalization") || node.op == "RMSNormalization" || (softmax && graph_.opset < 13);
  }

  Fact AlongAxis(const Node& node, const Fact& x) const {
    const StatusOr<bool> keep = KeepsAxes(node);
    if (!keep.ok()) return {};
    if (node.op.starts_with("Reduce")) {
      const auto axes = AxesOf(node, x.rank);
      if (!axes || std::ranges::count(*axes, x.axis) > 0) return {};
      return *keep ? x : Rows(x.rank - static_cast<int64_t>(axes->size()), x.axis - Before(*axes, x));
    }
    const bool first_is_default = IsArgument(node) || node.op == "Split";
    const StatusOr<int64_t> axis = IntAttribute(node, "axis", first_is_default ? 0 : -1);
    if (!axis.ok()) return {};
    const StatusOr<int64_t> normal = NormalAxis(*axis, x.rank);
    if (!normal.ok() || *normal == x.axis || (FromAxisOn(node) && *normal < x.axis)) return {};
    return IsArgument(node) && *keep == 0 ? Rows(x.rank - 1, x.axis - Before({*normal}, x)) : x;
  }

  static Fact Product(const Fact& a, const Fact& b) {
    if (a.kind != Fact::kRows) return {};
    if (b.kind == Fact::kRows) return a.rank >= 3 && a.rank == b.rank && a.axis == 0 && b.axis == 0 ? a : Fact();
    const bool matrix = b.kind == Fact::kShared && b.constant != nullptr && b.constant->shape.size() == 2;
    return matrix && a.rank >= 2 && a.axis < a.rank - 1 ? a : Fact();
  }

  Fact Gemm(const Node& node) const {
    const StatusOr<int64_t> transposed = IntAttribute(node, "transA", 0);
    const Fact x = In(node, 0);
    const bool rows = x.kind == Fact::kRows && x.axis == 0 && OthersAreShared(node, 1);
    const bool bias = node.Input(2) == kNoValue || StaysBelow(In(node, 2), Rows(2));
    return rows && bias && transposed.ok() && *transposed == 0 ? Rows(2) : Fact();
  }

  Fact LookUp(const Node& node, const Fact& data, const Fact& indices) const {
    const StatusOr<int64_t> axis = IntAttribute(node, "axis", 0);
    if (!axis.ok()) return {};
    if (data.kind == Fact::kShared && data.constant != nullptr && indices.kind == Fact::kRows && *axis == 0) {
      return Rows(indices.rank + static_cast<int64_t>(data.constant->shape.size()) - 1, indices.axis);
    }
    if (data.kind != Fact::kRows || indices.kind != Fact::kShared || indices.constant == nullptr) return {};
    const StatusOr<int64_t> normal = NormalAxis(*axis, data.rank);
    if (!normal.ok() || *normal == data.axis) return {};
    const int64_t more = static_cast<int64_t>(indices.constant->shape.size()) - 1;
    return Rows(data.rank + more, *normal < data.axis ? data.axis + more : data.axis);
  }

  Fact NewShape(const Node& node, const Fact& x) const {
    if (node.op == "Concat") {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Fact fact = In(node, i);
        if (fact.kind != Fact::kRows || fact.rank != x.rank || fact.axis != x.axis) return {};
      }
      const StatusOr<int64_t> axis = IntAttribute(node, "axis", 0);
      const StatusOr<int64_t> normal = axis.ok() ? NormalAxis(*axis, x.rank) : axis;
      return normal.ok() && *normal != x.axis ? x : Fact();
    }
    if (node.op == "Reshape") return Reshaped(node, x, In(node, 1));
    if (!OthersAreShared(node, 1)) return {};
    if (node.op == "Flatten") {
      const StatusOr<int64_t> axis = IntAttribute(node, "axis", 1);
      return axis.ok() && x.axis == 0 && (*axis == 1 || *axis == 1 - x.rank) ? Rows(2) : Fact();
    }
    if (node.op == "Transpose") {
      const StatusOr<std::vector<int64_t>> order = PermutationOf(node, static_cast<size_t>(x.rank));
      return order.ok() ? Rows(x.rank, std::ranges::find(*order, x.axis) - order->begin()) : Fact();
    }
    return Squeezed(node, x);
  }

  // Rows stay if all dimensions up to theirs do: a target says that by 0, and of the batch by its size, too.
  static Fact Reshaped(const Node& node, const Fact& x, const Fact& target) {
    const StatusOr<bool> allow_zero = AllowsZero(node);
    const auto sizes = SizesIn(target);
    if (!sizes || !allow_zero.ok() || *allow_zero || static_cast<int64_t>(sizes->size()) <= x.axis) return {};
    const auto own = sizes->begin() + x.axis;
    const bool stays = std::all_of(sizes->begin(), own, [](int64_t size) { return size == 0; });
    const bool once = std::count(own + 1, sizes->end(), kBatchSize) == 0;
    return stays && once && (*own == 0 || *own == kBatchSize) ? Rows(static_cast<int64_t>(sizes->size()), x.axis)
                                                              : Fact();
  }

  // Squeeze and Unsqueeze.
  Fact Squeezed(const Node& node, const Fact& x) const {
    const bool removes = node.op == "Squeeze";
    auto axes = AxesOf(node, removes ? x.rank : kMaxListLength);  // an upper bound, refined below
    if (!axes) return {};
    const auto count = static_cast<int64_t>(axes->size());
    if (!removes) axes = AxesOf(node, x.rank + count);
    if (!axes) return {};
    if (removes) {
      if (std::ranges::count(*axes, x.axis) > 0) return {};
      return Rows(x.rank - count, x.axis - Before(*axes, x));
    }
    int64_t axis = x.axis;  // each new dimension before it pushes it on
    for (const int64_t added : *axes) axis += added <= axis ? 1 : 0;
    return Rows(x.rank + count, axis);
  }

  bool AllInputs(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).kind != Fact::kRows || In(node, i).axis != 0) return false;
    }
    return true;
  }

  // The batch has a label of its own, in all operands that have rows, once, and in the result.
  Fact OfEquation(const Node& node) const {
    std::vector<int64_t> ranks;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Fact fact = In(node, i);
      const bool constant = fact.kind == Fact::kShared && fact.constant != nullptr;
      if (fact.kind != Fact::kRows && !constant) return {};
      ranks.push_back(constant ? static_cast<int64_t>(fact.constant->shape.size()) : fact.rank);
    }
    const StatusOr<std::string> text = StringAttribute(node, "equation", "");
    const StatusOr<Equation> equation = text.ok() ? ReadEquation(*text, ranks) : text.status();
    if (!equation.ok()) return {};
    std::optional<int> batch;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Fact fact = In(node, i);
      if (fact.kind != Fact::kRows) continue;
      const int label = equation->operands[i][static_cast<size_t>(fact.axis)];
      if (batch && label != *batch) return {};
      batch = label;
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      const int64_t wanted = In(node, i).kind == Fact::kRows ? 1 : 0;
      if (std::ranges::count(equation->operands[i], *batch) != wanted) return {};
    }
    const auto place = std::ranges::find(equation->result, *batch);
    if (place == equation->result.end()) return {};
    return Rows(static_cast<int64_t>(equation->result.size()), place - equation->result.begin());
  }

  // Inputs and first states have rows along one dimension, weights none; lengths of sequences are one a row.
  Fact Recurrent(const Node& node, size_t output) const {
    const StatusOr<int64_t> layout = IntAttribute(node, "layout", 0);
    if (!layout.ok()) return {};
    const int64_t axis = *layout == 0 ? 1 : 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Fact fact = In(node, i);
      const bool has_rows = i == 0 || i == 4 || i == 5 || (node.op == "LSTM" && i == 6);
      if (node.Input(i) == kNoValue) continue;
      if (!has_rows && fact.kind != Fact::kShared) return {};
      if (has_rows && (fact.kind != Fact::kRows || fact.axis != (i == 4 ? 0 : axis))) return {};
    }
    if (output == 0) return Rows(4, *layout == 0 ? 2 : 0);
    return Rows(3, axis);
  }

  static Fact Sizes(int64_t rank, std::vector<int64_t> sizes) {
    return {Fact::kSizes, rank, 0, nullptr, std::move(sizes)};
  }

  static Fact SizesOf(const Node& node, const Fact& x) {
    if (!node.attributes.empty()) return {};
    std::vector<int64_t> sizes(static_cast<size_t>(x.rank), kAnySize);
    sizes[static_cast<size_t>(x.axis)] = kBatchSize;
    return Sizes(1, std::move(sizes));
  }

  // The elements of a list of sizes.
  static std::optional<std::vector<int64_t>> SizesIn(const Fact& fact) {
    if (fact.kind == Fact::kSizes) return fact.rank == 1 ? std::optional(fact.sizes) : std::nullopt;
    return fact.constant != nullptr && fact.constant->shape.size() == 1 ? ListOf(fact) : std::nullopt;
  }

  // What is made of sizes and is sizes again.
  Fact OfSizes(const Node& node, const Fact& x) const {
    if (node.op == "Identity") return x;
    if (node.op == "Cast") {
      const StatusOr<DType> to = CastType(node);
      return to.ok() && *to == DType::kInt64 ? x : Fact();
    }
    if (node.op == "Unsqueeze") return x.rank == 0 ? Sizes(1, x.sizes) : Fact();
    if (node.op == "Squeeze") return x.rank == 1 && x.sizes.size() == 1 ? Sizes(0, x.sizes) : Fact();
    const auto indices = ListOf(In(node, 1));
    if (node.op != "Gather" || x.rank != 1 || !indices || In(node, 1).constant->shape.size() > 1) return {};
    std::vector<int64_t> sizes;
    const auto count = static_cast<int64_t>(x.sizes.size());
    for (const int64_t index : *indices) {
      if (index < -count || index >= count) return {};
      sizes.push_back(x.sizes[static_cast<size_t>(index < 0 ? index + count : index)]);
    }
    return Sizes(static_cast<int64_t>(In(node, 1).constant->shape.size()), std::move(sizes));
  }

  // Concat of lists of sizes.
  Fact Joined(const Node& node) const {
    std::vector<int64_t> joined;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto sizes = SizesIn(In(node, i));
      if (!sizes || node.op != "Concat") return {};
      joined.insert(joined.end(), sizes->begin(), sizes->end());
    }
    return Sizes(1, std::move(joined));
  }

  // One number, in a shape that has the batch once.
  static Fact Filled(const Fact& shape) {
    if (shape.kind != Fact::kSizes || shape.rank != 1) return {};
    const auto batch = std::ranges::find(shape.sizes, kBatchSize);
    if (batch == shape.sizes.end() || std::count(batch + 1, shape.sizes.end(), kBatchSize) > 0) return {};
    return Rows(static_cast<int64_t>(shape.sizes.size()), batch - shape.sizes.begin());
  }

  // A constant, repeated in such a shape.
  static Fact Expanded(const Fact& value, const Fact& shape) {
    const Fact rows = Filled(shape);
    return rows.kind == Fact::kRows && StaysBelow(value, rows) ? rows : Fact();
  }

  const Graph& graph_;
  std::vector<Fact> facts_;  // by value
};

}  // namespace

bool RowsAreIndependent(const Graph& graph) {
  return !graph.inputs.empty() && !graph.outputs.empty() && Proof(graph).Holds();
}

}  // namespace swizzle::fallback
