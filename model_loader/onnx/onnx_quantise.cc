#include "model_loader/onnx/onnx_quantise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model_loader/onnx/convert_opset.h"
#include "model_loader/onnx/graph_additions.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/weight_sources.h"
#include "model_loader/quantising/quantiser.h"
#include "onnx/onnx.pb.h"

namespace swizzle {
namespace {

constexpr int64_t kFirstOpset = 11;     // of DynamicQuantizeLinear
constexpr int64_t kFirstIrVersion = 4;  // before it, every initializer is listed as an input, too

// The names of what a weight and its scales are in whole numbers.
struct WholeWeight {
  std::string wholes, scales;
};

class DynamicQuantiser {
 public:
  DynamicQuantiser(onnx::ModelProto& model, const std::function<bool(const std::string&)>& skips,
                   const ReadOptions& options)
      : graph_(*model.mutable_graph()), additions_(graph_), skips_(skips), source_(options) {}

  Status Run() {
    TakeConstants(graph_, 2);
    sources_ = FindWeightSources(graph_, additions_);
    auto nodes = std::move(*graph_.mutable_node());
    graph_.clear_node();
    for (auto& node : nodes) {
      SWIZZLE_ASSIGN_OR_RETURN(const bool replaced, Replace(node));
      if (!replaced) *graph_.add_node() = std::move(node);
    }
    DropUnread(graph_, sources_, [&](int initializer) { return WasReplaced(initializer); });
    return {};
  }

 private:
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
    return node.op_type() == "Gemm" && node.input_size() >= 2 && NumberOf(node, "transA", 0) == 0 &&
           NumberOf(node, "alpha", 1) == 1 && NumberOf(node, "beta", 1) == 1;
  }

  StatusOr<bool> Replace(const onnx::NodeProto& node) {
    if (!IsPlain(node) || skips_(node.name())) return false;
    const auto weight = sources_.find(node.input(1));
    if (weight == sources_.end() || sources_.contains(node.input(0))) return false;
    const auto [initializer, is_turned] = weight->second;
    const onnx::TensorProto& tensor = graph_.initializer(initializer);
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() != 2) return false;
    const bool outputs_first = (NumberOf(node, "transB", 0) != 0) != is_turned;
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

  bool WasReplaced(int initializer) const {
    return wholes_.contains({initializer, false}) || wholes_.contains({initializer, true});
  }

  onnx::GraphProto& graph_;
  GraphAdditions additions_;
  const std::function<bool(const std::string&)>& skips_;
  TensorSource source_;
  std::map<std::string, WeightSource> sources_;  // by name, and by those of nodes that only rename
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
    return NotOnnx(bytes);
  }
  SWIZZLE_RETURN_IF_ERROR(ConvertOpset(proto, kFirstOpset));
  SWIZZLE_RETURN_IF_ERROR(DynamicQuantiser(proto, skips, options).Run());
  proto.set_ir_version(std::max(proto.ir_version(), kFirstIrVersion));
  return Serialised(proto);
}

}  // namespace swizzle
