#include "model_loader/onnx/inline_functions.h"

#include <google/protobuf/unknown_field_set.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "model_loader/onnx/operator_changes.h"
#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Fields of IR versions that the schema at hand may not know yet.
constexpr int kDefaultAttribute = 11, kFunctionOverload = 13, kNodeOverload = 8;

// Calls `take` for what unknown fields of that number hold.
template <typename Message, typename Take>
void ForEachUnknown(const Message& message, int number, const Take& take) {
  const google::protobuf::UnknownFieldSet& fields = message.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    const bool has_bytes = field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
    if (field.number() == number && has_bytes) take(field.length_delimited());
  }
}

// A function's or node's, empty if there is none.
template <typename Message>
std::string OverloadOf(const Message& message, int number) {
  std::string overload;
  if constexpr (requires { message.overload(); }) {
    overload = message.overload();
  } else {
    ForEachUnknown(message, number, [&overload](const auto& bytes) { overload = std::string(bytes); });
  }
  return overload;
}

using AttributesByName = std::map<std::string, onnx::AttributeProto>;

// The default attributes of an onnx::FunctionProto.
template <typename Function>
AttributesByName DefaultsOf(const Function& function) {
  AttributesByName defaults;
  if constexpr (requires { function.attribute_proto(); }) {
    for (const onnx::AttributeProto& attribute : function.attribute_proto()) defaults[attribute.name()] = attribute;
  } else {
    ForEachUnknown(function, kDefaultAttribute, [&defaults](const auto& bytes) {
      onnx::AttributeProto attribute;
      if (attribute.ParseFromString(bytes)) defaults[attribute.name()] = std::move(attribute);
    });
  }
  return defaults;
}

// How names of a function's body, all of which are its own, are called around it.
class Renaming {
 public:
  explicit Renaming(std::string prefix) : prefix_(std::move(prefix)) {}

  void Set(const std::string& name, const std::string& outer) { names_[name] = outer; }
  bool Knows(const std::string& name) const { return names_.contains(name); }

  std::string Of(const std::string& name) const {
    if (name.empty()) return name;
    const auto found = names_.find(name);
    return found != names_.end() ? found->second : prefix_ + name;
  }

  void Apply(onnx::NodeProto& node) const {
    node.set_name(Of(node.name().empty() ? node.op_type() : node.name()));
    for (std::string& input : *node.mutable_input()) input = Of(input);
    for (std::string& output : *node.mutable_output()) output = Of(output);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Apply(*attribute.mutable_g());
    }
  }

 private:
  void Apply(onnx::GraphProto& graph) const {
    graph.clear_value_info();
    for (auto& input : *graph.mutable_input()) input.set_name(Of(input.name()));
    for (auto& output : *graph.mutable_output()) output.set_name(Of(output.name()));
    for (auto& initializer : *graph.mutable_initializer()) initializer.set_name(Of(initializer.name()));
    for (auto& sparse : *graph.mutable_sparse_initializer()) {
      sparse.mutable_values()->set_name(Of(sparse.values().name()));
    }
    for (auto& node : *graph.mutable_node()) Apply(node);
  }

  const std::string prefix_;
  std::map<std::string, std::string> names_;
};

// Replaces what refers to a function's attributes; what refers to one that is neither given nor has a default goes.
void Resolve(onnx::NodeProto& node, const AttributesByName& given) {
  auto attributes = std::move(*node.mutable_attribute());
  node.clear_attribute();
  for (auto& attribute : attributes) {
    if (attribute.has_g()) {
      for (auto& inner : *attribute.mutable_g()->mutable_node()) Resolve(inner, given);
    }
    if (attribute.ref_attr_name().empty()) {
      *node.add_attribute() = std::move(attribute);
      continue;
    }
    const auto found = given.find(attribute.ref_attr_name());
    if (found == given.end()) continue;
    onnx::AttributeProto& resolved = *node.add_attribute();
    resolved = found->second;
    resolved.set_name(attribute.name());
  }
}

class Inliner {
 public:
  Inliner(onnx::ModelProto& model, const InliningLimits& limits)
      : limits_(limits), opset_(DefaultOpset(model)), bytes_left_(limits.max_bytes) {
    for (const auto& function : model.functions()) {
      functions_[{DomainOf(function), function.name(), OverloadOf(function, kFunctionOverload)}] = &function;
    }
  }

  Status InlineIn(onnx::GraphProto& graph, int depth = 0) {
    Nodes nodes = std::move(*graph.mutable_node());
    graph.clear_node();
    for (auto& node : nodes) SWIZZLE_RETURN_IF_ERROR(Put(node, *graph.mutable_node(), depth));
    return {};
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

  template <typename Proto>
  static std::string DomainOf(const Proto& proto) {
    return IsDefaultDomain(proto.domain()) ? "" : proto.domain();
  }

  Status Count() {
    if (++count_ <= limits_.max_nodes) return {};
    return InvalidArgument("the model's functions stand for more than ", limits_.max_nodes,
                           " nodes, which is the limit");
  }

  Status Put(onnx::NodeProto& node, Nodes& to, int depth) {
    SWIZZLE_RETURN_IF_ERROR(Count());
    const auto found = functions_.find({DomainOf(node), node.op_type(), OverloadOf(node, kNodeOverload)});
    if (found != functions_.end()) return Call(*found->second, node, to, depth);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) SWIZZLE_RETURN_IF_ERROR(InlineIn(*attribute.mutable_g(), depth));
    }
    *to.Add() = std::move(node);
    return {};
  }

  Status Call(const onnx::FunctionProto& function, const onnx::NodeProto& node, Nodes& to, int depth) {
    const std::string what = Concat("function ", QuotedName(function.name()));
    if (depth >= limits_.max_depth) {
      return InvalidArgument(what, " calls itself, or calls are nested more than ", limits_.max_depth, " deep");
    }
    if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
      return InvalidArgument(what, " is called with ", node.input_size(), " inputs and ", node.output_size(),
                             " outputs; it has ", function.input_size(), " and ", function.output_size());
    }
    bytes_left_ -= static_cast<int64_t>(function.ByteSizeLong());
    if (bytes_left_ < 0)
      return InvalidArgument("the model's functions stand for more than ", limits_.max_bytes, " bytes");
    SWIZZLE_RETURN_IF_ERROR(CheckOpset(function, what));
    Renaming names(Concat(function.name(), ".", calls_++, "/"));
    for (int i = 0; i < function.input_size(); ++i) {
      names.Set(function.input(i), i < node.input_size() ? node.input(i) : "");
    }
    const Nodes copies = NameOutputs(function, node, names);
    AttributesByName given = DefaultsOf(function);
    for (const auto& attribute : node.attribute()) given[attribute.name()] = attribute;
    for (const auto& body_node : function.node()) {
      onnx::NodeProto copy = body_node;
      names.Apply(copy);
      Resolve(copy, given);
      SWIZZLE_RETURN_IF_ERROR(Put(copy, to, depth + 1));
    }
    for (const auto& copy : copies) *to.Add() = copy;
    return {};
  }

  // The function's outputs are called as the node's. Gives what has to copy those that have a name already.
  static Nodes NameOutputs(const onnx::FunctionProto& function, const onnx::NodeProto& node, Renaming& names) {
    Nodes copies;
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& inner = function.output(i);
      if (node.output(i).empty()) continue;
      if (!names.Knows(inner)) {
        names.Set(inner, node.output(i));
        continue;
      }
      onnx::NodeProto& copy = *copies.Add();
      copy.set_op_type("Identity");
      copy.set_name(node.output(i));
      copy.add_input(names.Of(inner));
      copy.add_output(node.output(i));
    }
    return copies;
  }

  Status CheckOpset(const onnx::FunctionProto& function, const std::string& what) const {
    std::optional<int64_t> own;
    for (const auto& import : function.opset_import()) {
      if (IsDefaultDomain(import.domain())) own = import.version();
    }
    if (!own || !opset_ || *own == *opset_) return {};
    for (const auto& node : function.node()) {
      if (!IsDefaultDomain(node.domain()) || !DiffersBetween(node.op_type(), *own, *opset_)) continue;
      return Unimplemented(what, " is of opset ", *own, ", the model of ", *opset_, ", and ",
                           QuotedName(node.op_type()), " differs between them: export the model with one opset");
    }
    return {};
  }

  const InliningLimits& limits_;
  const std::optional<int64_t> opset_;
  std::map<Key, const onnx::FunctionProto*> functions_;
  int64_t bytes_left_;
  int count_ = 0, calls_ = 0;
};

}  // namespace

Status InlineFunctions(onnx::ModelProto& model, const InliningLimits& limits) {
  if (model.functions_size() == 0) return {};
  SWIZZLE_RETURN_IF_ERROR(Inliner(model, limits).InlineIn(*model.mutable_graph()));
  model.clear_functions();
  return {};
}

}  // namespace swizzle
