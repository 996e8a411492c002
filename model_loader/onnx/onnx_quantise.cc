#include "model_loader/onnx/onnx_quantise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model_loader/onnx/graph_additions.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/quantising/quantiser.h"
#include "onnx/onnx_pb.h"

namespace swizzle {
namespace {

constexpr int64_t kFirstOpset = 11;     // of DynamicQuantizeLinear
constexpr int64_t kFirstIrVersion = 4;  // before it, every initializer is listed as an input, too

double AttributeOf(const onnx::NodeProto& node, const char* name, double absent) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    return attribute.type() == onnx::AttributeProto::FLOAT ? double{attribute.f()} : static_cast<double>(attribute.i());
  }
  return absent;
}

int64_t OpsetOf(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (IsDefaultDomain(import.domain())) return import.version();
  }
  return 0;
}

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

// The names of what a weight and its scales are in whole numbers.
struct WholeWeight {
  std::string wholes, scales;
};

// What a name stands for: an initializer, or, behind a Transpose, the same with its dimensions swapped.
struct Source {
  int initializer = 0;
  bool is_turned = false;
};

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

class DynamicQuantiser {
 public:
  DynamicQuantiser(onnx::ModelProto& model, const std::function<bool(const std::string&)>& skips,
                   const ReadOptions& options)
      : graph_(*model.mutable_graph()), additions_(graph_), skips_(skips), source_(options) {}

  Status Run() {
    TakeConstants();
    FindNames();
    auto nodes = std::move(*graph_.mutable_node());
    graph_.clear_node();
    for (auto& node : nodes) {
      SWIZZLE_ASSIGN_OR_RETURN(const bool replaced, Replace(node));
      if (!replaced) *graph_.add_node() = std::move(node);
    }
    DropUnread();
    return {};
  }

 private:
  // Matrices that Constant nodes hold become initializers.
  void TakeConstants() {
    auto nodes = std::move(*graph_.mutable_node());
    graph_.clear_node();
    for (auto& node : nodes) {
      const onnx::TensorProto* const tensor = ConstantOf(node);
      if (tensor == nullptr || tensor->data_type() != onnx::TensorProto::FLOAT || tensor->dims_size() != 2) {
        *graph_.add_node() = std::move(node);
        continue;
      }
      onnx::TensorProto& taken = *graph_.add_initializer();
      taken = *tensor;
      taken.set_name(node.output(0));
    }
  }

  void FindNames() {
    for (int i = 0; i < graph_.initializer_size(); ++i) {
      const std::string& name = graph_.initializer(i).name();
      sources_[name] = {i};
      additions_.Avoid(name);
    }
    for (const auto& input : graph_.input()) additions_.Avoid(input.name());
    for (const auto& node : graph_.node()) {
      for (const auto& output : node.output()) additions_.Avoid(output);
      const auto source = OnlyRenames(node) ? sources_.find(node.input(0)) : sources_.end();
      if (source == sources_.end() || graph_.initializer(source->second.initializer).dims_size() != 2) continue;
      Source named = source->second;
      const bool keeps =
          node.attribute_size() > 0 && node.attribute(0).ints_size() > 0 && node.attribute(0).ints(0) == 0;
      if (node.op_type() == "Transpose" && !keeps) named.is_turned = !named.is_turned;
      sources_[node.output(0)] = named;
    }
  }

  onnx::NodeProto& AddNode(const char* op, std::initializer_list<std::string> inputs,
                           std::initializer_list<std::string> outputs, const std::string& name) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }

  static bool IsPlain(const onnx::NodeProto& node) {
    if (!IsDefaultDomain(node.domain()) || node.output_size() != 1) return false;
    if (node.op_type() == "MatMul") return node.input_size() == 2;
    return node.op_type() == "Gemm" && node.input_size() >= 2 && AttributeOf(node, "transA", 0) == 0 &&
           AttributeOf(node, "alpha", 1) == 1 && AttributeOf(node, "beta", 1) == 1;
  }

  StatusOr<bool> Replace(const onnx::NodeProto& node) {
    if (!IsPlain(node) || skips_(node.name())) return false;
    const auto weight = sources_.find(node.input(1));
    if (weight == sources_.end() || sources_.contains(node.input(0))) return false;
    const auto [initializer, is_turned] = weight->second;
    const onnx::TensorProto& tensor = graph_.initializer(initializer);
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() != 2) return false;
    const bool outputs_first = (AttributeOf(node, "transB", 0) != 0) != is_turned;
    SWIZZLE_ASSIGN_OR_RETURN(const WholeWeight whole, WholesOf(initializer, outputs_first));
    const std::string prefix = node.name().empty() ? node.output(0) : node.name();
    const auto fresh = [&](const char* suffix) { return additions_.Fresh(prefix + suffix); };
    const std::vector<std::string>& x = Quantised(node.input(0));
    const std::string sums = fresh(".sums"), reals = fresh(".reals"), scale = fresh(".scale");
    const bool has_bias = node.input_size() > 2 && !node.input(2).empty();
    const std::string product = has_bias ? fresh(".product") : node.output(0);
    AddNode("MatMulInteger", {x[0], whole.wholes, x[2]}, {sums}, prefix);
    onnx::AttributeProto& to = *AddNode("Cast", {sums}, {reals}, reals).add_attribute();
    to.set_name("to");
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(onnx::TensorProto::FLOAT);
    AddNode("Mul", {x[1], whole.scales}, {scale}, scale);
    AddNode("Mul", {reals, scale}, {product}, fresh(".scaled"));
    if (has_bias) AddNode("Add", {product, node.input(2)}, {node.output(0)}, fresh(".biased"));
    return true;
  }

  // Whole numbers of an activation, their scale and their zero point.
  const std::vector<std::string>& Quantised(const std::string& x) {
    std::vector<std::string>& made = quantised_[x];
    if (made.empty()) {
      made = {additions_.Fresh(x + ".wholes"), additions_.Fresh(x + ".scale"), additions_.Fresh(x + ".zero_point")};
      AddNode("DynamicQuantizeLinear", {x}, {made[0], made[1], made[2]}, additions_.Fresh(x + ".quantise"));
    }
    return made;
  }

  StatusOr<WholeWeight> WholesOf(int initializer, bool outputs_first) {
    const auto [known, is_new] = wholes_.try_emplace({initializer, outputs_first});
    if (!is_new) return known->second;
    onnx::TensorProto copy = graph_.initializer(initializer);
    const std::string name = copy.name();
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor weight, ReadTensor(copy, Concat("initializer '", name, "'"), source_));
    const auto rows = static_cast<size_t>(weight.shape[outputs_first ? 0 : 1]);
    const auto cols = static_cast<size_t>(weight.shape[outputs_first ? 1 : 0]);
    std::vector<float> row(cols), scales;
    std::vector<int8_t> wholes(rows * cols);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) row[c] = weight.floats()[outputs_first ? r * cols + c : c * rows + r];
      scales.push_back(RoundToSteps(row));
      for (size_t c = 0; c < cols; ++c) wholes[c * rows + r] = static_cast<int8_t>(std::nearbyint(row[c] / scales[r]));
    }
    const auto outputs = static_cast<int64_t>(rows);
    known->second = {additions_.AddInitializer(name + ".wholes", onnx::TensorProto::INT8,
                                               {static_cast<int64_t>(cols), outputs}, wholes),
                     additions_.AddInitializer(name + ".scales", onnx::TensorProto::FLOAT, {outputs}, scales)};
    return known->second;
  }

  // Weights that nothing reads any more, what only names them, and inputs that they were given to.
  void DropUnread() {
    std::set<std::string> read = ReadNames();
    const auto is_unread = [&](const std::string& name) {
      const auto given = sources_.find(name);
      return given != sources_.end() && WasReplaced(given->second.initializer) && !read.contains(name);
    };
    const auto drop = [](auto& all, const auto& is_dropped) {
      all.erase(std::remove_if(all.begin(), all.end(), is_dropped), all.end());
    };
    drop(*graph_.mutable_node(), [&](const auto& node) { return OnlyRenames(node) && is_unread(node.output(0)); });
    drop(*graph_.mutable_input(), [&](const auto& input) { return is_unread(input.name()); });
    drop(*graph_.mutable_initializer(), [&](const auto& tensor) { return is_unread(tensor.name()); });
  }

  // What only renames reads where it is read.
  std::set<std::string> ReadNames() const {
    std::set<std::string> read;
    for (const auto& output : graph_.output()) read.insert(output.name());
    AddReadWithin(graph_, read);
    for (int i = graph_.node_size() - 1; i >= 0; --i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (OnlyRenames(node) && !read.contains(node.output(0))) continue;
      read.insert(node.input().begin(), node.input().end());
    }
    return read;
  }

  bool WasReplaced(int initializer) const {
    return wholes_.contains({initializer, false}) || wholes_.contains({initializer, true});
  }

  onnx::GraphProto& graph_;
  GraphAdditions additions_;
  const std::function<bool(const std::string&)>& skips_;
  TensorSource source_;
  std::map<std::string, Source> sources_;  // by name, and by those of nodes that only rename
  std::map<std::string, std::vector<std::string>> quantised_;
  std::map<std::pair<int, bool>, WholeWeight> wholes_;  // by initializer, and whether outputs come first in it
};

}  // namespace

StatusOr<std::vector<std::byte>> QuantiseOnnxDynamically(std::span<const std::byte> model,
                                                         const std::function<bool(const std::string&)>& skips,
                                                         const ReadOptions& options) {
  const auto as_they_are = [](const OnnxWeight&, std::span<float>) {};
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, RewriteOnnxWeights(model, as_they_are, options));
  onnx::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("this is not an ONNX model, or it is truncated");
  }
  if (OpsetOf(proto) < kFirstOpset) {
    return Unimplemented("the model is of opset ", OpsetOf(proto), "; whole numbers need opset ", kFirstOpset,
                         ": export it anew, or write a .swz file");
  }
  SWIZZLE_RETURN_IF_ERROR(DynamicQuantiser(proto, skips, options).Run());
  proto.set_ir_version(std::max(proto.ir_version(), kFirstIrVersion));
  bytes.resize(proto.ByteSizeLong());
  proto.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

}  // namespace swizzle
