#include "model_loader/shapes/symbolic_walk.h"

#include <algorithm>
#include <utility>

#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/elements.h"

namespace swizzle {
namespace {

const SymbolicValue kAbsent;

bool IsCounted(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool; }

std::optional<SymbolicElements> ElementsOf(const Tensor& tensor) {
  if (!IsCounted(tensor.dtype) || tensor.elements() > kMostSymbolicElements) return std::nullopt;
  const std::optional<Elements> elements = Elements::FromTensor(tensor);
  if (!elements) return std::nullopt;
  SymbolicElements made{tensor.shape, {}};
  for (const Scalar& scalar : elements->scalars) made.values.emplace_back(scalar.whole);
  return made;
}

void Take(const Tensor& tensor, SymbolicValue& value) {
  value.dtype = tensor.dtype;
  value.shape.emplace(tensor.shape.begin(), tensor.shape.end());
  value.elements = ElementsOf(tensor);
}

// What a Constant makes, by the one attribute that it has; others than whole numbers and tensors tell nothing.
void TakeConstant(const Node& node, SymbolicValue& value) {
  for (const auto& [name, attribute] : node.attributes) {
    const auto* const tensor = std::get_if<Tensor>(&attribute);
    const auto* const number = std::get_if<int64_t>(&attribute);
    const auto* const list = std::get_if<std::vector<int64_t>>(&attribute);
    if (tensor != nullptr) Take(*tensor, value);
    if (number == nullptr && list == nullptr) continue;
    value.dtype = DType::kInt64;
    const Shape shape = list == nullptr ? Shape() : Shape{static_cast<int64_t>(list->size())};
    value.shape.emplace(shape.begin(), shape.end());
    value.elements = {shape, {}};
    if (number != nullptr) value.elements->values.emplace_back(*number);
    if (list != nullptr) value.elements->values.assign(list->begin(), list->end());
  }
}

}  // namespace

const SymbolicValue& SymbolicNode::In(size_t i) const {
  return Has(i) ? values_[static_cast<size_t>(node_.inputs[i])] : kAbsent;
}

std::optional<std::span<const float>> SymbolicNode::Floats(size_t i) const {
  if (!Has(i)) return std::nullopt;
  const auto& constant = graph_.values[static_cast<size_t>(node_.inputs[i])].constant;
  return constant && constant->dtype == DType::kFloat32 ? std::optional(constant->floats()) : std::nullopt;
}

bool SymbolicNode::HasRequired() const {
  const OnnxOperator* const row = node_.domain.empty() ? FindOnnxOperator("", node_.op) : nullptr;
  bool has_all = row != nullptr;
  for (int i = 0; has_all && i < row->spec.min_inputs; ++i) has_all = Has(static_cast<size_t>(i));
  return has_all;
}

std::optional<std::vector<SymbolicInt>> SymbolicNode::List(size_t i) const {
  const auto& elements = In(i).elements;
  return elements && elements->shape.size() <= 1 ? std::optional(elements->values) : std::nullopt;
}

std::optional<std::vector<int64_t>> SymbolicNode::Numbers(size_t i) const {
  const auto list = List(i);
  if (!list) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const SymbolicInt& element : *list) {
    const auto number = element.Number();
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<int64_t>> SymbolicNode::Axes(size_t i, size_t rank) const {
  std::optional<std::vector<int64_t>> axes;
  if (Has(i)) {
    axes = Numbers(i);
  } else if (node_.attributes.contains("axes")) {
    const auto given = IntsAttribute(node_, "axes", {});
    if (given.ok()) axes = *given;
  }
  if (!axes) return std::nullopt;
  const auto normal = NormalAxes(*std::move(axes), static_cast<int64_t>(rank));
  return normal.ok() ? std::optional(*normal) : std::nullopt;
}

std::optional<size_t> SymbolicNode::Axis(int64_t absent, size_t rank) const {
  const auto axis = Int("axis", absent);
  if (!axis) return std::nullopt;
  const StatusOr<int64_t> normal = NormalAxis(*axis, static_cast<int64_t>(rank));
  return normal.ok() ? std::optional(static_cast<size_t>(*normal)) : std::nullopt;
}

std::optional<int64_t> SymbolicNode::Int(const std::string& name, int64_t absent) const {
  const StatusOr<int64_t> value = IntAttribute(node_, name, absent);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<int64_t>> SymbolicNode::Ints(const std::string& name, size_t count, int64_t absent) const {
  const auto value = IntsAttribute(node_, name, std::vector<int64_t>(count, absent));
  return value.ok() && value->size() == count ? std::optional(*value) : std::nullopt;
}

SymbolicWalk::SymbolicWalk(const Graph& graph, Inputs inputs) : graph_(graph) {
  Grow();
  if (inputs == Inputs::kOneBatch) batch_ = symbols_.NewVarying();
  for (const int input : graph.inputs) {
    const Value& declared = graph.values[static_cast<size_t>(input)];
    Suppose(input, declared.dtype, declared.shape);
    auto& shape = values_[static_cast<size_t>(input)].shape;
    if (inputs == Inputs::kOneBatch && shape && !shape->empty()) shape->front() = batch_;
  }
}

// Takes in the values that are new in the graph, of which only constants are known yet.
void SymbolicWalk::Grow() {
  while (values_.size() < graph_.values.size()) {
    const auto value = static_cast<int>(values_.size());
    values_.emplace_back();
    values_.back().alike = value;
    VisitConstant(value);
  }
}

void SymbolicWalk::VisitConstant(int value) {
  const auto& constant = graph_.values[static_cast<size_t>(value)].constant;
  if (constant) Take(*constant, values_[static_cast<size_t>(value)]);
}

void SymbolicWalk::Suppose(int value, std::optional<DType> dtype, const std::optional<Shape>& shape) {
  SymbolicValue& known = values_[static_cast<size_t>(value)];
  if (!known.dtype) known.dtype = dtype;
  if (known.shape || !shape) return;
  known.shape.emplace();
  for (const int64_t extent : *shape) known.shape->push_back(extent < 0 ? symbols_.New() : SymbolicInt(extent));
}

void SymbolicWalk::NameElements(int value) {
  SymbolicValue& known = values_[static_cast<size_t>(value)];
  if (known.elements || !known.shape || !known.dtype || !IsCounted(*known.dtype)) return;
  SymbolicElements named;
  int64_t count = 1;
  for (const SymbolicInt& size : *known.shape) {
    const auto number = size.Number();
    if (!number || *number < 0 || *number > kMostSymbolicElements) return;
    count *= *number;
    if (count > kMostSymbolicElements) return;
    named.shape.push_back(*number);
  }
  for (int64_t i = 0; i < count; ++i) named.values.push_back(symbols_.NewNumber());
  known.elements = std::move(named);
}

const SymbolicValue& SymbolicWalk::Of(int value) const {
  return value == kNoValue ? kAbsent : values_[static_cast<size_t>(value)];
}

void SymbolicWalk::Visit(const Node& node) {
  Grow();
  const SymbolicNode known = At(node);
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    if (node.outputs[output] != kNoValue) VisitOutput(known, output);
  }
}

void SymbolicWalk::VisitOutput(const SymbolicNode& node, size_t output) {
  const auto index = static_cast<size_t>(node.node().outputs[output]);
  SymbolicValue made;
  made.alike = static_cast<int>(index);
  if (node.node().op == "Constant" && node.node().domain.empty()) {
    TakeConstant(node.node(), made);
  } else if (node.HasRequired()) {
    made.dtype = TypeOfResult(node, output);
    const auto source = output == 0 ? ShapeSource(node) : std::nullopt;
    if (source) {
      made.alike = node.In(*source).alike;
      made.shape = node.In(*source).shape;
    } else {
      made.shape = ResultShape(node, output, symbols_);
    }
    if (output == 0) made.elements = ResultElements(node, symbols_);
    if (made.shape && made.shape->size() > kMostSymbolicRank) made.shape.reset();
    if (made.elements && (static_cast<int64_t>(made.elements->values.size()) > kMostSymbolicElements ||
                          made.elements->shape.size() > kMostSymbolicRank)) {
      made.elements.reset();
    }
    const std::string& op = node.node().op;
    if (op == "Shape" && node.Int("start", 0) == 0 && !node.node().attributes.contains("end")) {
      made.shape_of = node.In(0).alike;
    }
    const bool keeps_elements = op == "Identity" || (op == "Cast" && made.dtype == DType::kInt64);
    if (keeps_elements && output == 0) made.shape_of = node.In(0).shape_of;
  }
  values_[index] = std::move(made);
}

}  // namespace swizzle
