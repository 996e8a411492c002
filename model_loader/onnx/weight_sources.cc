#include "model_loader/onnx/weight_sources.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

// Adds what graphs within nodes read, the values that are theirs among it.
void AddReadWithin(const onnx::GraphProto& graph, std::set<std::string>& read) {
  const auto add = [&](const onnx::GraphProto& within) {
    for (const auto& output : within.output()) read.insert(output.name());
    for (const auto& node : within.node()) read.insert(node.input().begin(), node.input().end());
    AddReadWithin(within, read);
  };
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add(attribute.g());
      for (const auto& within : attribute.graphs()) add(within);
    }
  }
}

// What a Constant node holds, where that is a tensor.
const onnx::TensorProto* ConstantOf(const onnx::NodeProto& node) {
  if (node.op_type() != "Constant" || !IsDefaultDomain(node.domain()) || node.output_size() != 1) return nullptr;
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "value" && attribute.has_t()) return &attribute.t();
  }
  return nullptr;
}

// A node that gives its input another name, or swaps its two dimensions.
bool OnlyRenames(const onnx::NodeProto& node) {
  const bool passes = node.op_type() == "Identity" || node.op_type() == "Transpose";
  return passes && IsDefaultDomain(node.domain()) && node.input_size() == 1 && node.output_size() == 1;
}

// What only renames reads where it is read.
std::set<std::string> ReadNames(const onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const auto& output : graph.output()) read.insert(output.name());
  AddReadWithin(graph, read);
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph.node(i);
    if (OnlyRenames(node) && !read.contains(node.output(0))) continue;
    read.insert(node.input().begin(), node.input().end());
  }
  return read;
}

}  // namespace

double NumberOf(const onnx::NodeProto& node, const char* name, double absent) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    return attribute.type() == onnx::AttributeProto::FLOAT ? double{attribute.f()} : static_cast<double>(attribute.i());
  }
  return absent;
}

int64_t OpsetOf(const onnx::ModelProto& model) { return DefaultOpset(model).value_or(0); }

void TakeConstants(onnx::GraphProto& graph, int least_rank) {
  auto nodes = std::move(*graph.mutable_node());
  graph.clear_node();
  for (auto& node : nodes) {
    const onnx::TensorProto* const tensor = ConstantOf(node);
    if (tensor == nullptr || tensor->data_type() != onnx::TensorProto::FLOAT || tensor->dims_size() < least_rank) {
      *graph.add_node() = std::move(node);
      continue;
    }
    onnx::TensorProto& taken = *graph.add_initializer();
    taken = *tensor;
    taken.set_name(node.output(0));
  }
}

std::map<std::string, WeightSource> FindWeightSources(const onnx::GraphProto& graph, GraphAdditions& additions) {
  std::map<std::string, WeightSource> sources;
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const std::string& name = graph.initializer(i).name();
    sources[name] = {i};
    additions.Avoid(name);
  }
  for (const auto& input : graph.input()) additions.Avoid(input.name());
  for (const auto& node : graph.node()) {
    for (const auto& output : node.output()) additions.Avoid(output);
    const auto source = OnlyRenames(node) ? sources.find(node.input(0)) : sources.end();
    if (source == sources.end() || graph.initializer(source->second.initializer).dims_size() != 2) continue;
    WeightSource named = source->second;
    const bool keeps = node.attribute_size() > 0 && node.attribute(0).ints_size() > 0 && node.attribute(0).ints(0) == 0;
    if (node.op_type() == "Transpose" && !keeps) named.is_turned = !named.is_turned;
    sources[node.output(0)] = named;
  }
  return sources;
}

void DropUnread(onnx::GraphProto& graph, const std::map<std::string, WeightSource>& sources,
                const std::function<bool(int initializer)>& was_replaced) {
  const std::set<std::string> read = ReadNames(graph);
  const auto is_unread = [&](const std::string& name) {
    const auto given = sources.find(name);
    return given != sources.end() && was_replaced(given->second.initializer) && !read.contains(name);
  };
  const auto drop = [](auto& all, const auto& is_dropped) {
    all.erase(std::remove_if(all.begin(), all.end(), is_dropped), all.end());
  };
  drop(*graph.mutable_node(), [&](const auto& node) { return OnlyRenames(node) && is_unread(node.output(0)); });
  drop(*graph.mutable_input(), [&](const auto& input) { return is_unread(input.name()); });
  drop(*graph.mutable_initializer(), [&](const auto& tensor) { return is_unread(tensor.name()); });
}

}  // namespace swizzle
