#include "model_loader/expansions/value_facts.h"

#include <algorithm>
#include <cstring>

#include "model_loader/graph/operator_table.h"

namespace swizzle::expansions {
namespace {

constexpr int64_t kUnknown = -1;

// Recognisers take these operators of com.microsoft as they are: they stand between those that are written out.
std::optional<Shape> OfMicrosoft(const Node& node, const ValueFacts& facts) {
  constexpr size_t kTable = 2;
  const std::string& op = node.op;
  std::optional<Shape> shape = facts.Of(node.Input(0)).shape;
  if (!shape || FactsOf(node.domain, op).KeepsShape()) return shape;
  if (op == "EmbedLayerNormalization" || op == "QEmbedLayerNormalization") {
    const std::optional<Shape> table = facts.Of(node.Input(kTable)).shape;
    shape->push_back(table && table->size() == 2 ? (*table)[1] : kUnknown);
    return shape;
  }
  const bool is_product = op.find("MatMul") != std::string::npos || op == "Attention" || op == "QAttention";
  return is_product ? std::optional(Shape(shape->size(), kUnknown)) : std::nullopt;
}

}  // namespace

ValueFact ValueFacts::Of(int value) const {
  if (value == kNoValue) return {};
  const Value& given = graph_.values[static_cast<size_t>(value)];
  if (given.constant) return {given.dtype, given.shape};
  const SymbolicValue& known = walk_.Of(value);
  if (!known.shape) return {known.dtype, std::nullopt};
  Shape shape;
  for (const SymbolicInt& size : *known.shape) shape.push_back(size.Number().value_or(kUnknown));
  return {known.dtype, std::move(shape)};
}

const Tensor* ValueFacts::ConstantOf(int value) const {
  if (value == kNoValue) return nullptr;
  const Value& given = graph_.values[static_cast<size_t>(value)];
  if (given.constant) return &*given.constant;
  const auto found = constants_.find(value);
  return found != constants_.end() ? &found->second : nullptr;
}

std::optional<std::vector<int64_t>> ValueFacts::WholesOf(int value) const {
  const Tensor* const tensor = ConstantOf(value);
  if (tensor == nullptr || tensor->dtype != DType::kInt64) return std::nullopt;
  std::vector<int64_t> wholes(static_cast<size_t>(tensor->elements()));
  if (!wholes.empty()) std::memcpy(wholes.data(), tensor->bytes.data(), tensor->bytes.size());
  return wholes;
}

void ValueFacts::Note(const Node& node) {
  if (node.op == "Constant") {
    const auto value = node.attributes.find("value");
    const Tensor* const tensor = value != node.attributes.end() ? std::get_if<Tensor>(&value->second) : nullptr;
    if (tensor != nullptr) constants_.emplace(node.outputs[0], *tensor);
  }
  walk_.Visit(node);
  if (node.domain == "com.microsoft" && node.outputs[0] != kNoValue) {
    walk_.Suppose(node.outputs[0], TypeOfResult(walk_.At(node), 0), OfMicrosoft(node, *this));
  }
  for (const int output : node.outputs) {
    if (output == kNoValue) continue;
    const auto hint = hints_.find(graph_.values[static_cast<size_t>(output)].name);
    if (hint != hints_.end()) walk_.Suppose(output, hint->second.dtype, hint->second.shape);
  }
}

}  // namespace swizzle::expansions
