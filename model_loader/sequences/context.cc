#include "model_loader/sequences/context.h"

#include <algorithm>

#include "model_loader/sequences/known.h"

namespace swizzle::sequences {

Context::Context(Graph& graph)
    : graph_(graph),
      forms_(graph.values.size()),
      facts_(*graph.sequences),
      has_arg_max_(std::ranges::find(graph.nodes, "ArgMax", &Node::op) != graph.nodes.end()) {}

void Context::Enter(const Node& node) {
  node_ = &node;
  forms_.resize(graph_.values.size());  // nodes before may have made constants
  out_.SetName(node.name);
}

void Context::SetOther(size_t output, Form form) {
  if (output < node().outputs.size() && node().outputs[output] != kNoValue) {
    forms_[node().outputs[output]] = std::move(form);
  }
}

const Form& Context::FormOf(int value) {
  if (!forms_[value]) {
    forms_[value] = graph_.IsConstant(value)
                        ? KnownConstant(*this, value)
                        : Form(Unknown{Unimplemented("'", graph_.values[value].name, "' is not known")});
  }
  return *forms_[value];
}

int Context::AddConstant(const std::string& name, Tensor tensor) { return graph_.AddConstant(name, std::move(tensor)); }

Axes Context::BatchAxis() const {
  const int64_t batch = facts_.sequences().batch;
  return AsDimension({AxisKind::kBatch, batch == kFreeBatch ? Whole{1, 1, 0} : Whole{batch}});
}

Axes Context::LengthAxis() const {
  const int64_t length = facts_.sequences().length;
  return AsDimension({AxisKind::kLength, length == kFreeBatch ? Whole{1, 0, 1} : Whole{length}});
}

int64_t Context::FixedLength() const {
  constexpr int64_t kMostPairs = int64_t{1} << 28;
  const int64_t length = facts_.sequences().length;
  return length < 1 || length > kMostPairs / length ? 0 : length;
}

}  // namespace swizzle::sequences
