#include "model_loader/onnx/onnx_quantise_static.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model_loader/onnx/convert_opset.h"
#include "model_loader/onnx/graph_additions.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/weight_sources.h"
#include "model_loader/quantising/quantiser.h"
#include "onnx/onnx.pb.h"

namespace swizzle {
namespace {

constexpr int64_t kFirstStaticOpset = 13;

// The dimension of a layer's weight that counts output channels; -1: it is no layer that has whole numbers here.
int OutputAxis(const onnx::NodeProto& node, int rank) {
  if (!IsDefaultDomain(node.domain()) || node.input_size() < 2) return -1;
  if (node.op_type() == "Conv") return rank >= 3 ? 0 : -1;
  if (rank != 2) return -1;
  if (node.op_type() == "MatMul") return 1;
  const bool plain =
      NumberOf(node, "transA", 0) == 0 && NumberOf(node, "alpha", 1) == 1 && NumberOf(node, "beta", 1) == 1;
  return node.op_type() == "Gemm" && plain ? (NumberOf(node, "transB", 0) != 0 ? 0 : 1) : -1;
}

// Whether windows read so much beside the plane, where everything is zero, that its means say little of what they read.
bool PadsMuch(const onnx::NodeProto& node, const Shape& plane) {
  constexpr int64_t kFewest = 4;  // elements of a dimension for each that pads it
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == "auto_pad" && attribute.s() != "NOTSET" && attribute.s() != "VALID") return true;
    if (attribute.name() != "pads") continue;
    for (int i = 0; i < attribute.ints_size() && !plane.empty(); ++i) {
      if (attribute.ints(i) * kFewest > plane[static_cast<size_t>(i) % plane.size()]) return true;
    }
  }
  return false;
}

int64_t ProductFrom(const Shape& shape, size_t first) {
  int64_t product = 1;
  for (size_t i = first; i < shape.size(); ++i) product *= shape[i];
  return product;
}

Tensor Turned(const Tensor& matrix) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  std::vector<float> turned(matrix.floats().size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      turned[static_cast<size_t>(c * rows + r)] = matrix.floats()[static_cast<size_t>(r * columns + c)];
    }
  }
  return Tensor::Floats({columns, rows}, turned);
}

class StaticQuantiser {
 public:
  StaticQuantiser(onnx::ModelProto& model, const std::map<std::string, RoundedActivation>& activations,
                  const std::function<bool(const std::string&)>& skips)
      : graph_(*model.mutable_graph()), additions_(graph_), activations_(activations), skips_(skips), source_({}) {}

  StatusOr<std::vector<QuantisedNode>> Run() {
    TakeConstants(graph_, 1);
    sources_ = FindWeightSources(graph_, additions_);
    for (const auto& node : graph_.node()) {
      for (const auto& output : node.output()) makers_[output] = node.op_type();
    }
    auto nodes = std::move(*graph_.mutable_node());
    graph_.clear_node();
    std::vector<QuantisedNode> layers;
    for (auto& node : nodes) {
      SWIZZLE_RETURN_IF_ERROR(Quantise(node, layers));
      *graph_.add_node() = std::move(node);
    }
    DropUnread(graph_, sources_, [&](int initializer) { return replaced_.contains(initializer); });
    return layers;
  }

 private:
  // A weight, once it is in whole numbers.
  struct Weight {
    std::string real;            // what DequantizeLinear makes of them
    std::vector<float> scales;   // by output channel
    std::vector<double> errors;  // by output channel and input channel, of all taps together
    double decibels = 0.0;
  };

  Status Quantise(onnx::NodeProto& node, std::vector<QuantisedNode>& layers) {
    SWIZZLE_RETURN_IF_ERROR(CorrectAdd(node));
    const auto weight = node.input_size() < 2 ? sources_.end() : sources_.find(node.input(1));
    if (weight == sources_.end() || sources_.contains(node.input(0))) return ReadRounded(node);
    const onnx::TensorProto& tensor = graph_.initializer(weight->second.initializer);
    const int axis = OutputAxis(node, tensor.dims_size());
    if (axis < 0 || tensor.data_type() != onnx::TensorProto::FLOAT) return ReadRounded(node);
    QuantisedNode& layer = layers.emplace_back();
    layer.name = node.name().empty() ? node.output(0) : node.name();
    const auto activation = activations_.find(node.input(0));
    if (activation == activations_.end() || skips_(layer.name)) return {};
    layer.input = node.input(0);
    SWIZZLE_ASSIGN_OR_RETURN(const Weight* const made, WholesOf(node.input(1), axis));
    layer.weight_decibels = made->decibels;
    const std::vector<double> added = MeanErrors(node, *made, activation->second);
    node.set_input(0, Rounded(activation->first, activation->second.as));
    node.set_input(1, made->real);
    if (node.op_type() != "MatMul") return SetBias(node, *made, activation->second.as.scale, added);
    if (!added.empty()) mean_errors_[node.output(0)] = added;
    return {};
  }

  // Of the layer's sums, by output channel, from the rounding of its weight. Empty: nobody knows.
  static std::vector<double> MeanErrors(const onnx::NodeProto& node, const Weight& weight,
                                        const RoundedActivation& input) {
    const bool is_conv = node.op_type() == "Conv";
    const std::vector<double>& means = is_conv ? input.plane_means : input.vector_means;
    const size_t outputs = weight.scales.size(), inputs = outputs == 0 ? 0 : weight.errors.size() / outputs;
    const auto groups = static_cast<size_t>(is_conv ? NumberOf(node, "group", 1) : 1);
    if (groups == 0 || outputs % groups != 0 || means.size() != inputs * groups) return {};
    if (is_conv && PadsMuch(node, input.plane)) return {};
    std::vector<double> added(outputs);
    for (size_t output = 0; output < outputs; ++output) {
      const size_t first = output / (outputs / groups) * inputs;
      for (size_t k = 0; k < inputs; ++k) added[output] += weight.errors[output * inputs + k] * means[first + k];
    }
    return added;
  }

  // FP32, of a number for each of so many channels, which are the last dimension.
  StatusOr<std::optional<Tensor>> FindBias(const std::string& name, size_t channels) {
    const auto found = sources_.find(name);
    if (found == sources_.end() || found->second.is_turned) return std::nullopt;
    onnx::TensorProto copy = graph_.initializer(found->second.initializer);
    int64_t elements = 1;
    for (const int64_t size : copy.dims()) elements *= size;
    const bool fits = copy.data_type() == onnx::TensorProto::FLOAT && copy.dims_size() > 0 &&
                      elements == static_cast<int64_t>(channels) && copy.dims(copy.dims_size() - 1) == elements;
    if (!fits) return std::nullopt;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor bias, ReadTensor(copy, Concat("initializer '", name, "'"), source_));
    return bias;
  }

  // Of Conv and Gemm.
  Status SetBias(onnx::NodeProto& node, const Weight& weight, float input_scale, const std::vector<double>& added) {
    const std::string name = node.input_size() > 2 ? node.input(2) : "";
    std::vector<float> bias(weight.scales.size());
    if (!name.empty()) {
      SWIZZLE_ASSIGN_OR_RETURN(auto found, FindBias(name, bias.size()));
      if (!found || found->shape.size() != 1) return {};
      replaced_.insert(sources_.at(name).initializer);
      bias.assign(found->floats().begin(), found->floats().end());
    } else if (added.empty()) {
      return {};
    }
    for (size_t i = 0; i < added.size(); ++i) bias[i] -= static_cast<float>(added[i]);
    while (node.input_size() < 3) node.add_input("");
    node.set_input(2, BiasOf(name.empty() ? node.output(0) + ".bias" : name, bias, input_scale, weight.scales));
    return {};
  }

  // Where a node adds a constant to a product without a bias, the constant takes off the product's mean errors.
  Status CorrectAdd(onnx::NodeProto& node) {
    if (!IsDefaultDomain(node.domain()) || node.op_type() != "Add" || node.input_size() != 2) return {};
    const int product = mean_errors_.contains(node.input(0)) ? 0 : 1;
    const auto errors = mean_errors_.find(node.input(product));
    if (errors == mean_errors_.end()) return {};
    const std::string& name = node.input(1 - product);
    SWIZZLE_ASSIGN_OR_RETURN(const auto bias, FindBias(name, errors->second.size()));
    if (!bias) return {};
    std::vector<float> corrected(bias->floats().begin(), bias->floats().end());
    for (size_t i = 0; i < corrected.size(); ++i) corrected[i] -= static_cast<float>(errors->second[i]);
    replaced_.insert(sources_.at(name).initializer);
    node.set_input(1 - product,
                   additions_.AddInitializer(name + ".corrected", onnx::TensorProto::FLOAT, bias->shape, corrected));
    return {};
  }

  // Whether it may be part of a function that is written out: a sum or product with something that is not rounded, but
  // for that of a gate.
  bool IsOfAFunction(const onnx::NodeProto& node) const {
    if (node.op_type() != "Add" && node.op_type() != "Mul") return false;
    return !std::ranges::all_of(node.input(), [&](const std::string& input) {
      const auto maker = makers_.find(input);
      const bool gate = maker != makers_.end() && (maker->second == "Sigmoid" || maker->second == "HardSigmoid");
      return activations_.contains(input) || (gate && node.op_type() == "Mul");
    });
  }

  // Nodes that compute whole numbers of such, or move them, read what is rounded.
  Status ReadRounded(onnx::NodeProto& node) {
    constexpr std::array<std::string_view, 17> kReaders = {
        "Add",           "AveragePool", "Clip",      "Concat",    "GlobalAveragePool",
        "GlobalMaxPool", "HardSigmoid", "HardSwish", "LeakyRelu", "MaxPool",
        "Mul",           "Relu",        "Resize",    "Sigmoid",   "Slice",
        "Split",         "DepthToSpace"};
    if (!IsDefaultDomain(node.domain()) || std::ranges::find(kReaders, node.op_type()) == kReaders.end()) return {};
    if (IsOfAFunction(node)) return {};
    for (std::string& input : *node.mutable_input()) {
      const auto found = activations_.find(input);
      if (found != activations_.end()) input = Rounded(found->first, found->second.as);
    }
    return {};
  }

  onnx::NodeProto& AddNode(const char* op, std::initializer_list<std::string> inputs, const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }

  // Whole numbers by channels of `axis` as real ones again.
  std::string Dequantised(const std::string& wholes, onnx::TensorProto::DataType type, const std::vector<float>& scales,
                          int axis) {
    const Shape shape = {static_cast<int64_t>(scales.size())};
    const std::string scale = additions_.AddInitializer(wholes + ".scale", onnx::TensorProto::FLOAT, shape, scales);
    const std::string zero_points =
        type == onnx::TensorProto::INT32
            ? additions_.AddInitializer(wholes + ".zero_point", type, shape, std::vector<int32_t>(scales.size()))
            : additions_.AddInitializer(wholes + ".zero_point", type, shape, std::vector<int8_t>(scales.size()));
    const std::string real = additions_.Fresh(wholes + ".real");
    onnx::AttributeProto& attribute = *AddNode("DequantizeLinear", {wholes, scale, zero_points}, real).add_attribute();
    attribute.set_name("axis");
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(axis);
    return real;
  }

  // An activation that is rounded to steps of its scale.
  std::string Rounded(const std::string& x, const Quantised& as) {
    std::string& real = rounded_[x];
    if (!real.empty()) return real;
    const std::string scale =
        additions_.AddInitializer(x + ".scale", onnx::TensorProto::FLOAT, {}, std::vector<float>{as.scale});
    const std::string zero_point = additions_.AddInitializer(x + ".zero_point", onnx::TensorProto::UINT8, {},
                                                             std::vector<uint8_t>{static_cast<uint8_t>(as.zero_point)});
    const std::string wholes = additions_.Fresh(x + ".wholes");
    AddNode("QuantizeLinear", {x, scale, zero_point}, wholes);
    real = additions_.Fresh(x + ".rounded");
    AddNode("DequantizeLinear", {wholes, scale, zero_point}, real);
    return real;
  }

  StatusOr<const Weight*> WholesOf(const std::string& name, int axis) {
    const auto [known, is_new] = weights_.try_emplace({name, axis});
    if (!is_new) return &known->second;
    const auto [initializer, is_turned] = sources_.at(name);
    replaced_.insert(initializer);
    onnx::TensorProto copy = graph_.initializer(initializer);
    SWIZZLE_ASSIGN_OR_RETURN(Tensor weight, ReadTensor(copy, Concat("initializer '", copy.name(), "'"), source_));
    if (is_turned) weight = Turned(weight);
    if (!std::ranges::all_of(weight.floats(), [](float number) { return std::isfinite(number); })) {
      return InvalidArgument("initializer '", copy.name(), "' has numbers that are not finite; --skip its layer");
    }
    const auto outputs = static_cast<size_t>(weight.shape[static_cast<size_t>(axis)]);
    const std::span<const float> real = weight.floats();
    const size_t each = outputs == 0 ? 0 : real.size() / outputs;
    const auto taps = static_cast<size_t>(axis == 0 ? ProductFrom(weight.shape, 2) : 1);
    const size_t inputs = each / std::max<size_t>(taps, 1);
    known->second.errors.resize(outputs * inputs);
    const auto place = [&](size_t output, size_t k) { return axis == 0 ? output * each + k : k * outputs + output; };
    std::vector<int8_t> wholes(real.size());
    std::vector<float> row(each);
    double signal = 0.0, noise = 0.0;
    for (size_t output = 0; output < outputs; ++output) {
      for (size_t k = 0; k < each; ++k) row[k] = real[place(output, k)];
      const float scale = RoundToSteps(row);
      known->second.scales.push_back(scale);
      for (size_t k = 0; k < each; ++k) {
        const double value = real[place(output, k)], error = row[k] - value;
        signal += value * value;
        noise += error * error;
        known->second.errors[output * inputs + k / taps] += error;
        wholes[place(output, k)] = static_cast<int8_t>(std::nearbyint(row[k] / scale));
      }
    }
    const bool exact = signal == 0.0 || noise == 0.0;
    known->second.decibels = exact ? std::numeric_limits<double>::infinity() : 10.0 * std::log10(signal / noise);
    const std::string made = additions_.AddInitializer(name + ".wholes", onnx::TensorProto::INT8, weight.shape, wholes);
    known->second.real = Dequantised(made, onnx::TensorProto::INT8, known->second.scales, axis);
    return &known->second;
  }

  // As INT32 by the product of both scales; beside numbers that leave these, the products are nothing, and it stays.
  std::string BiasOf(const std::string& name, const std::vector<float>& bias, float input_scale,
                     const std::vector<float>& weight_scales) {
    const Shape shape = {static_cast<int64_t>(bias.size())};
    std::vector<int32_t> wholes(bias.size());
    std::vector<float> scales(bias.size());
    for (size_t i = 0; i < bias.size(); ++i) {
      scales[i] = input_scale * weight_scales[i];
      constexpr double kMost = 1 << 30;
      const double whole = std::nearbyint(double{bias[i]} / scales[i]);
      if (!(std::abs(whole) <= kMost)) return additions_.AddInitializer(name, onnx::TensorProto::FLOAT, shape, bias);
      wholes[i] = static_cast<int32_t>(whole);
    }
    const std::string made = additions_.AddInitializer(name + ".wholes", onnx::TensorProto::INT32, shape, wholes);
    return Dequantised(made, onnx::TensorProto::INT32, scales, 0);
  }

  onnx::GraphProto& graph_;
  GraphAdditions additions_;
  const std::map<std::string, RoundedActivation>& activations_;
  const std::function<bool(const std::string&)>& skips_;
  TensorSource source_;
  std::map<std::string, WeightSource> sources_;
  std::map<std::string, std::string> makers_;               // operators, by what they make
  std::set<int> replaced_;                                  // initializers
  std::map<std::string, std::string> rounded_;              // by activation
  std::map<std::pair<std::string, int>, Weight> weights_;   // by name and axis
  std::map<std::string, std::vector<double>> mean_errors_;  // of products without a bias, by what they make
};

}  // namespace

StatusOr<QuantisedOnnx> QuantiseOnnxStatically(std::span<const std::byte> model,
                                               const std::map<std::string, RoundedActivation>& activations,
                                               const std::function<bool(const std::string&)>& skips) {
  onnx::ModelProto proto;
  if (!proto.ParseFromArray(model.data(), static_cast<int>(model.size()))) {
    return NotOnnx(model);
  }
  SWIZZLE_RETURN_IF_ERROR(ConvertOpset(proto, kFirstStaticOpset));
  if (HasQuantisingNodes(proto.graph())) {
    return InvalidArgument("it is quantised already; start from the FP32 model");
  }
  QuantisedOnnx made;
  SWIZZLE_ASSIGN_OR_RETURN(made.layers, StaticQuantiser(proto, activations, skips).Run());
  constexpr int64_t kFirstIrVersion = 4;  // before it, every initializer is listed as an input, too
  proto.set_ir_version(std::max<int64_t>(proto.ir_version(), kFirstIrVersion));
  SWIZZLE_ASSIGN_OR_RETURN(made.model, Serialised(proto));
  return made;
}

}  // namespace swizzle
