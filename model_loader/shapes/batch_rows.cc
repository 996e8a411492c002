#include "model_loader/shapes/batch_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/equation.h"

namespace swizzle {
namespace {

using RowsResult = std::optional<RowsAt>;

// A scale or zero point of com.microsoft, one number of any rank, which doesn't broadcast.
bool IsScale(const BatchNode& node, size_t input) {
  return node.node().op.starts_with("QLinear") && input != 0 && input != 3;
}

// Dimensions are aligned at their ends: rows stay apart where all that have rows have them at the same place, as many,
// and all else has one element there.
RowsResult Elementwise(const BatchNode& node) {
  if (node.opset() < 7 && node.node().attributes.contains("axis")) return std::nullopt;
  std::optional<size_t> place;  // of the rows, from the end
  std::optional<SymbolicInt> size;
  size_t rank = 0;
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.Has(i)) continue;
    if (IsScale(node, i) && node.IsShared(i)) continue;
    if (IsScale(node, i) || node.ShapeOf(i) == nullptr) return std::nullopt;
    rank = std::max(rank, node.ShapeOf(i)->size());
    const auto rows = node.Rows(i);
    if (!rows) continue;
    const size_t from_end = node.ShapeOf(i)->size() - *rows;
    if (place && (from_end != *place || node.SizeOf(i, *rows) != *size)) return std::nullopt;
    place = from_end, size = node.SizeOf(i, *rows);
  }
  if (!place) return std::nullopt;
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.Has(i) || IsScale(node, i) || node.Rows(i) || node.ShapeOf(i)->size() < *place) continue;
    if (!node.SizeOf(i, node.ShapeOf(i)->size() - *place).Is(1)) return std::nullopt;
  }
  // Slopes in a list may be channels', of dimension 1, before opset 9.
  const bool of_channels = node.node().op == "PRelu" && node.opset() < 9;
  if (of_channels && rank != *place && node.Has(1) && node.ShapeOf(1)->size() == 1) return std::nullopt;
  return RowsAt{rank - *place, rank, size};
}

// The operator makes row i of dimension 0 of row i of input 0.
RowsResult OfFirstInput(const BatchNode& node, size_t output) {
  const std::string& op = node.node().op;
  if (node.ShapeOf(0) == nullptr || node.Rows(0) != 0 || !node.AreShared(1)) return std::nullopt;
  if (output > 0 && op != "Dropout") return std::nullopt;  // MaxPool's indices count from the start of the batch
  return RowsAt{0, node.ShapeOf(0)->size(), node.SizeOf(0, 0)};
}

// Softmax or one of its kin, of an opset in which they work on all dimensions from their axis on.
bool IsOldSoftmax(const BatchNode& node) {
  const std::string& op = node.node().op;
  return node.opset() < 13 && (op.ends_with("oftmax") || op == "Hardmax");
}

// Whether the node works on all dimensions from its axis on.
bool FromAxisOn(const BatchNode& node) {
  const std::string& op = node.node().op;
  return op.ends_with("LayerNormalization") || op == "RMSNormalization" || op == "Trilu" || IsOldSoftmax(node);
}

// A node's axis where it has no attribute.
int64_t AbsentAxis(const BatchNode& node) {
  const std::string& op = node.node().op;
  if (op == "ArgMax" || op == "ArgMin" || op == "Split") return 0;
  if (op == "Trilu") return -2;  // it has none: it works on the last two
  return op.ends_with("uantizeLinear") || IsOldSoftmax(node) ? 1 : -1;
}

// Whether the input is left out or has one element.
bool IsOneIfAny(const BatchNode& node, size_t input) {
  if (!node.Has(input)) return true;
  const SymbolicShape* const shape = node.ShapeOf(input);
  return shape != nullptr && std::ranges::all_of(*shape, [](const SymbolicInt& size) { return size.Is(1); });
}

// Behind dimensions that are reduced to 1, or disappear.
RowsResult Reduced(const BatchNode& node, const std::vector<int64_t>& axes, bool keep) {
  const size_t rows = *node.Rows(0), rank = node.ShapeOf(0)->size();
  const auto before =
      static_cast<size_t>(std::ranges::count_if(axes, [&](int64_t axis) { return axis < static_cast<int64_t>(rows); }));
  if (axes.empty() || std::ranges::binary_search(axes, static_cast<int64_t>(rows))) return std::nullopt;
  return keep ? RowsAt{rows, rank, node.SizeOf(0, rows)}
              : RowsAt{rows - before, rank - axes.size(), node.SizeOf(0, rows)};
}

// The operator works along axes, none of which may be the rows'.
RowsResult AlongAxis(const BatchNode& node, size_t output) {
  const std::string& op = node.node().op;
  const StatusOr<bool> keep = KeepsAxes(node.node());
  const auto rows = node.Rows(0);
  if (node.ShapeOf(0) == nullptr || !rows || !node.AreShared(1) || !keep.ok()) return std::nullopt;
  const size_t rank = node.ShapeOf(0)->size();
  if (op.starts_with("Reduce")) {
    const auto axes = node.Axes(1, rank);
    return axes ? Reduced(node, *axes, *keep) : std::nullopt;
  }
  if (output > 0 && op != "Split" && op != "TopK") return std::nullopt;  // statistics of a norm
  const RowsAt same = {*rows, rank, node.SizeOf(0, *rows)};
  if (op.ends_with("uantizeLinear") && IsOneIfAny(node, 1) && IsOneIfAny(node, 2)) return same;
  auto axis = node.Axis(AbsentAxis(node), rank);
  if (op == "CumSum" || op == "CumProd") {
    const auto given = node.Numbers(1);
    const auto normal = given && given->size() == 1 ? NormalAxis(given->front(), static_cast<int64_t>(rank))
                                                    : InvalidArgument("its axis is not known");
    axis = normal.ok() ? std::optional(static_cast<size_t>(*normal)) : std::nullopt;
  }
  if (!axis || *axis == *rows || (FromAxisOn(node) && *axis < *rows)) return std::nullopt;
  return op == "ArgMax" || op == "ArgMin" ? Reduced(node, {static_cast<int64_t>(*axis)}, *keep) : RowsResult(same);
}

// Rows are matrices of a stack, or rows of the first matrix or columns of the second.
RowsResult Product(const BatchNode& node) {
  const SymbolicShape *const a = node.ShapeOf(0), *const b = node.ShapeOf(1);
  if (a == nullptr || b == nullptr || a->size() < 2 || b->size() < 2 || !node.AreShared(2)) return std::nullopt;
  const size_t rank = std::max(a->size(), b->size());
  const auto from_end = [&](size_t i) { return node.ShapeOf(i)->size() - *node.Rows(i); };
  // What the rows meet in the other: nothing, or one matrix for all.
  const auto meets_one = [&](size_t other, size_t place) {
    const size_t other_rank = node.ShapeOf(other)->size();
    return node.IsShared(other) && (place <= 2 || other_rank < place || node.SizeOf(other, other_rank - place).Is(1));
  };
  if (node.Rows(0) && node.Rows(1)) {
    const bool same = from_end(0) == from_end(1) && node.SizeOf(0, *node.Rows(0)) == node.SizeOf(1, *node.Rows(1));
    return same && from_end(0) > 2 ? RowsResult({rank - from_end(0), rank, node.SizeOf(0, *node.Rows(0))})
                                   : std::nullopt;
  }
  const size_t with = node.Rows(0) ? 0 : 1;
  if (!node.Rows(with) || !meets_one(1 - with, from_end(with))) return std::nullopt;
  if (from_end(with) == (with == 0 ? 1U : 2U)) return std::nullopt;  // what is summed over
  return RowsAt{rank - from_end(with), rank, node.SizeOf(with, *node.Rows(with))};
}

RowsResult GemmProduct(const BatchNode& node) {
  const auto turns_a = node.Int("transA", 0);
  const SymbolicShape* const a = node.ShapeOf(0);
  if (turns_a != 0 || a == nullptr || a->size() != 2 || node.Rows(0) != 0 || !node.AreShared(1)) return std::nullopt;
  if (node.Has(2)) {
    const SymbolicShape* const sum = node.ShapeOf(2);
    if (sum == nullptr || sum->size() > 2 || (sum->size() == 2 && !sum->front().Is(1))) return std::nullopt;
  }
  return RowsAt{0, 2, a->front()};
}

// Row i of dimension 0 of row i of each.
RowsResult OfAllInputs(const BatchNode& node) {
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.ShapeOf(i) == nullptr || node.Rows(i) != 0) return std::nullopt;
  }
  return RowsAt{0, node.ShapeOf(0)->size(), node.SizeOf(0, 0)};
}

// The batch has a label of its own, in all operands that have rows, once, and in the result.
RowsResult OfEquation(const BatchNode& node) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.ShapeOf(i) == nullptr) return std::nullopt;
    ranks.push_back(static_cast<int64_t>(node.ShapeOf(i)->size()));
  }
  const StatusOr<std::string> text = StringAttribute(node.node(), "equation", "");
  const StatusOr<Equation> equation = text.ok() ? ReadEquation(*text, ranks) : text.status();
  if (!equation.ok()) return std::nullopt;
  std::optional<int> batch;
  std::optional<SymbolicInt> size;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto rows = node.Rows(i);
    if (!rows) continue;
    const int label = equation->operands[i][*rows];
    if (batch && (label != *batch || node.SizeOf(i, *rows) != *size)) return std::nullopt;
    batch = label, size = node.SizeOf(i, *rows);
  }
  for (size_t i = 0; i < ranks.size() && batch; ++i) {
    if (std::ranges::count(equation->operands[i], *batch) != (node.Rows(i) ? 1 : 0)) return std::nullopt;
  }
  if (!batch) return std::nullopt;
  const auto place = std::ranges::find(equation->result, *batch);
  if (place == equation->result.end()) return std::nullopt;
  return RowsAt{static_cast<size_t>(place - equation->result.begin()), equation->result.size(), size};
}

// Inputs and first states have rows along one dimension, weights none; lengths of sequences are one a row.
RowsResult Recurrent(const BatchNode& node, size_t output) {
  const auto layout = node.Int("layout", 0);
  if (!layout || node.ShapeOf(0) == nullptr || !node.Rows(0)) return std::nullopt;
  const size_t axis = *layout == 0 ? 1 : 0;
  const SymbolicInt& size = node.SizeOf(0, *node.Rows(0));
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.Has(i)) continue;
    const bool has_rows = i == 0 || i == 4 || i == 5 || (node.node().op == "LSTM" && i == 6);
    const size_t place = i == 4 ? 0 : axis;
    if (has_rows ? node.Rows(i) != place || node.SizeOf(i, place) != size : !node.IsShared(i)) return std::nullopt;
  }
  return output == 0 ? RowsAt{*layout == 0 ? 2U : 0U, 4, size} : RowsAt{axis, 3, size};
}

RowsResult RowsByRule(const BatchNode& node, RowRule rule, size_t output) {
  switch (rule) {
    case RowRule::kElementwise:
      return Elementwise(node);
    case RowRule::kFirstInput:
      return OfFirstInput(node, output);
    case RowRule::kAxis:
      return AlongAxis(node, output);
    case RowRule::kProduct:
      return node.node().op == "Gemm" ? GemmProduct(node) : Product(node);
    case RowRule::kMoved:
      return MovedRows(node);
    case RowRule::kAllInputs:
      return OfAllInputs(node);
    case RowRule::kEquation:
      return OfEquation(node);
    case RowRule::kRecurrent:
      return Recurrent(node, output);
    case RowRule::kShared:
    case RowRule::kUnknown:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

const Standing& BatchNode::StandingOf(size_t i) const {
  static constexpr Standing kAbsent = {Standing::Kind::kShared};
  return Has(i) ? standings_[static_cast<size_t>(node().inputs[i])] : kAbsent;
}

bool BatchNode::AreShared(size_t first) const {
  for (size_t i = first; i < size(); ++i) {
    if (!IsShared(i)) return false;
  }
  return true;
}

std::optional<size_t> BatchNode::Rows(size_t i) const {
  const Standing& standing = StandingOf(i);
  return standing.kind == Standing::Kind::kRows ? std::optional(standing.axis) : std::nullopt;
}

bool BatchNode::VariesAtMostAt(size_t i, size_t place) const {
  const auto list = List(i);
  for (size_t at = 0; list && at < list->size(); ++at) {
    if (at != place && Varies((*list)[at])) return false;
  }
  return list.has_value();
}

std::optional<int64_t> BatchNode::Outer() const {
  std::optional<int64_t> outer;
  for (size_t i = 0; i < size(); ++i) {
    const Standing& standing = StandingOf(i);
    if (standing.kind != Standing::Kind::kRows) continue;
    if (outer.value_or(standing.outer) != standing.outer) return std::nullopt;
    outer = standing.outer;
  }
  return outer.value_or(1);
}

std::optional<RowsAt> RowsOfResult(const BatchNode& node, RowRule rule, size_t output) {
  const auto outer = node.Outer();
  if (!outer) return std::nullopt;
  if (*outer == 1 || node.node().op == "Reshape") return RowsByRule(node, rule, output);
  // Slices along the dimension are treated each by itself.
  if (rule != RowRule::kElementwise && rule != RowRule::kProduct && rule != RowRule::kAxis) return std::nullopt;
  auto rows = RowsByRule(node, rule, output);
  if (rows) rows->outer = *outer;
  return rows;
}

}  // namespace swizzle
