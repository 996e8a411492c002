#include "model_loader/onnx/convert_opset.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "model_loader/onnx/graph_additions.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/weight_sources.h"

namespace swizzle {
namespace {

constexpr int64_t kOldestOpset = 6;
constexpr int64_t kInputsMayBeConstants = 4;  // the IR version from which initializers need not be listed as inputs

// Of before opset 7, when operands had to be told to broadcast, and how.
constexpr std::array<std::string_view, 11> kBroadcast = {"Add",  "And", "Div", "Equal", "Gemm", "Greater",
                                                         "Less", "Mul", "Or",  "Pow",   "Sub"};

class Converter {
 public:
  Converter(onnx::GraphProto& graph, int64_t from, int64_t to)
      : graph_(graph), from_(from), to_(to), additions_(graph) {
    Avoid(graph);
  }

  Status Run() {
    auto nodes = std::move(*graph_.mutable_node());
    graph_.clear_node();
    for (auto& node : nodes) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) SWIZZLE_RETURN_IF_ERROR(Converter(*attribute.mutable_g(), from_, to_).Run());
      }
      if (IsDefaultDomain(node.domain())) {
        const Status converted = Convert(node);
        if (!converted.ok()) {
          return Annotate(converted, Concat("the model is of opset ", from_, ", and ", QuotedName(node.op_type()),
                                            " node ", QuotedName(node.name()), " has no like in opset ", to_));
        }
      }
      *graph_.add_node() = std::move(node);
    }
    return {};
  }

 private:
  using Node = onnx::NodeProto;

  // Names of graphs within count, too: they see those around them.
  void Avoid(const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) additions_.Avoid(input.name());
    for (const auto& initializer : graph.initializer()) additions_.Avoid(initializer.name());
    for (const auto& node : graph.node()) {
      for (const auto& input : node.input()) additions_.Avoid(input);
      for (const auto& output : node.output()) additions_.Avoid(output);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) Avoid(attribute.g());
      }
    }
  }

  // Whether the opset is one of those that are passed.
  bool Passes(int64_t opset) const { return from_ < opset && opset <= to_; }

  static const onnx::AttributeProto* Find(const Node& node, std::string_view name) {
    const auto found = std::ranges::find_if(node.attribute(), [&](const auto& a) { return a.name() == name; });
    return found != node.attribute().end() ? &*found : nullptr;
  }

  // Takes an attribute away.
  static std::optional<onnx::AttributeProto> Take(Node& node, std::string_view name) {
    for (int i = 0; i < node.attribute_size(); ++i) {
      if (node.attribute(i).name() != name) continue;
      onnx::AttributeProto attribute = std::move(*node.mutable_attribute(i));
      node.mutable_attribute()->DeleteSubrange(i, 1);
      return attribute;
    }
    return std::nullopt;
  }

  static void SetText(Node& node, const char* name, const char* text) {
    Take(node, name);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(text);
  }

  static void SetInt(Node& node, const char* name, int64_t value) {
    Take(node, name);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }

  // Input i of the node becomes `name`; those before it that are not there are left out.
  static void SetInput(Node& node, int i, const std::string& name) {
    while (node.input_size() <= i) node.add_input();
    node.set_input(i, name);
  }

  std::string Wholes(const Node& node, const char* what, const std::vector<int64_t>& wholes) {
    return additions_.AddInitializer(Concat(node.output(0), ".", what), onnx::TensorProto::INT64,
                                     {static_cast<int64_t>(wholes.size())}, wholes);
  }
  std::string Number(const Node& node, const char* what, float number) {
    return additions_.AddInitializer(Concat(node.output(0), ".", what), onnx::TensorProto::FLOAT, {},
                                     std::vector<float>{number});
  }

  // The attribute, a list, becomes input i.
  void ListToInput(Node& node, const char* name, int i) {
    if (const auto list = Take(node, name)) {
      SetInput(node, i, Wholes(node, name, {list->ints().begin(), list->ints().end()}));
    }
  }
  void NumberToInput(Node& node, const char* name, int i) {
    if (const auto number = Take(node, name)) SetInput(node, i, Number(node, name, number->f()));
  }

  Status Convert(Node& node) {
    if (node.output_size() == 0) return {};
    const std::string& op = node.op_type();
    if (Passes(7)) SWIZZLE_RETURN_IF_ERROR(ConvertTo7(node));
    if (op == "Slice" && Passes(10)) ConvertSlice(node);
    if (op == "TopK" && Passes(10)) {
      if (const auto k = Take(node, "k")) SetInput(node, 1, Wholes(node, "k", {k->i()}));
    }
    if (Passes(11)) SWIZZLE_RETURN_IF_ERROR(ConvertTo11(node));
    if (op == "Dropout" && Passes(12)) Take(node, "ratio");
    if (Passes(13)) SWIZZLE_RETURN_IF_ERROR(ConvertTo13(node));
    return {};
  }

  Status ConvertTo7(Node& node) {
    const std::string& op = node.op_type();
    if (std::ranges::find(kBroadcast, op) != kBroadcast.end()) {
      if (Find(node, "axis") != nullptr) return Unimplemented("it broadcasts from an axis on");
      Take(node, "broadcast");
    }
    if (op == "Dropout" || op == "BatchNormalization") Take(node, "is_test");
    if (op == "PRelu") return Unimplemented("its slopes are one a channel");
    return {};
  }

  void ConvertSlice(Node& node) {
    const auto starts = Take(node, "starts"), ends = Take(node, "ends"), axes = Take(node, "axes");
    if (!starts || !ends) return;
    SetInput(node, 1, Wholes(node, "starts", {starts->ints().begin(), starts->ints().end()}));
    SetInput(node, 2, Wholes(node, "ends", {ends->ints().begin(), ends->ints().end()}));
    if (axes) SetInput(node, 3, Wholes(node, "axes", {axes->ints().begin(), axes->ints().end()}));
  }

  Status ConvertTo11(Node& node) {
    const std::string& op = node.op_type();
    if (op == "BatchNormalization" && NumberOf(node, "spatial", 1) == 0) return Unimplemented("it is not spatial");
    if (op == "BatchNormalization") Take(node, "spatial");
    if (op == "Clip") {
      NumberToInput(node, "min", 1);
      NumberToInput(node, "max", 2);
    }
    if (op == "Pad") {
      ListToInput(node, "pads", 1);
      NumberToInput(node, "value", 2);
    }
    if (op == "Scatter") node.set_op_type("ScatterElements");
    return op == "Upsample" || op == "Resize" ? ConvertResize(node) : Status();
  }

  // The elements of an initializer that the graph has itself; nothing of others.
  std::optional<std::vector<float>> FloatsOf(const std::string& name) const {
    const auto found = std::ranges::find_if(graph_.initializer(), [&](const auto& i) { return i.name() == name; });
    if (found == graph_.initializer().end()) return std::nullopt;
    onnx::TensorProto copy = *found;
    TensorSource source{ReadOptions()};
    const StatusOr<Tensor> tensor = ReadTensor(copy, name, source);
    if (!tensor.ok() || tensor->dtype != DType::kFloat32) return std::nullopt;
    return std::vector<float>(tensor->floats().begin(), tensor->floats().end());
  }

  // There was one way then: coordinates times the scale, rounded down, or up where the result is smaller.
  Status ConvertResize(Node& node) {
    bool shrinks = false, grows = false;
    if (node.op_type() == "Resize" && (Find(node, "mode") == nullptr || Find(node, "mode")->s() == "nearest")) {
      const auto known = FloatsOf(node.input_size() > 1 ? node.input(1) : "");
      if (!known) return Unimplemented("its scales are not known");
      shrinks = std::ranges::any_of(*known, [](float scale) { return scale < 1.0f; });
      grows = std::ranges::any_of(*known, [](float scale) { return scale > 1.0f; });
      if (shrinks && grows) return Unimplemented("it shrinks one dimension and stretches another");
    }
    std::string scales = node.input_size() > 1 ? node.input(1) : "";
    if (const auto list = Take(node, "scales")) {
      scales =
          additions_.AddInitializer(Concat(node.output(0), ".scales"), onnx::TensorProto::FLOAT, {list->floats_size()},
                                    std::vector<float>(list->floats().begin(), list->floats().end()));
    }
    SetInput(node, 1, "");
    SetInput(node, 2, scales);
    node.set_op_type("Resize");
    if (const auto* const mode = Find(node, "mode"); mode != nullptr && mode->s() == "bilinear") {
      SetText(node, "mode", "linear");
    }
    SetText(node, "coordinate_transformation_mode", "asymmetric");
    SetText(node, "nearest_mode", shrinks ? "ceil" : "floor");
    return {};
  }

  Status ConvertTo13(Node& node) {
    const std::string& op = node.op_type();
    if (op == "Squeeze" || op == "Unsqueeze" || op == "ReduceSum") ListToInput(node, "axes", 1);
    if (op == "Split") ListToInput(node, "split", 1);
    if (op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") ConvertSoftmax(node);
    return {};
  }

  // It was over the axis and all behind it.
  void ConvertSoftmax(Node& node) {
    const auto axis = static_cast<int64_t>(NumberOf(node, "axis", 1));
    SetInt(node, "axis", -1);
    if (axis == -1) return;
    const std::string x = node.input(0), y = node.output(0);
    const std::string flat = additions_.Fresh(y + ".flat"), result = additions_.Fresh(y + ".rows");
    const std::string shape = additions_.Fresh(y + ".shape");
    const auto add = [&](const char* op, const std::vector<std::string>& inputs, const std::string& output) -> Node& {
      Node& added = *graph_.add_node();
      added.set_op_type(op);
      added.set_name(output);
      for (const std::string& input : inputs) added.add_input(input);
      added.add_output(output);
      return added;
    };
    SetInt(add("Flatten", {x}, flat), "axis", axis);
    add("Shape", {x}, shape);
    node.set_input(0, flat);
    node.set_output(0, result);
    Node back = node;  // comes behind, by the name that others read
    *graph_.add_node() = std::move(back);
    node.Clear();
    node.set_op_type("Reshape");
    node.set_name(additions_.Fresh(y + ".back"));
    node.add_input(result);
    node.add_input(shape);
    node.add_output(y);
  }

  onnx::GraphProto& graph_;
  const int64_t from_, to_;
  GraphAdditions additions_;
};

}  // namespace

Status ConvertOpset(onnx::ModelProto& model, int64_t opset) {
  SWIZZLE_CHECK(opset <= kLastConvertedOpset);
  const int64_t from = OpsetOf(model);
  if (from >= opset) return {};
  if (from < kOldestOpset) {
    return Unimplemented("the model is of opset ", from, "; those before ", kOldestOpset, " are not converted to ",
                         opset, ": export it anew");
  }
  SWIZZLE_RETURN_IF_ERROR(Converter(*model.mutable_graph(), from, opset).Run());
  for (auto& import : *model.mutable_opset_import()) {
    if (IsDefaultDomain(import.domain())) import.set_version(opset);
  }
  model.set_ir_version(std::max(model.ir_version(), kInputsMayBeConstants));
  return {};
}

}  // namespace swizzle
