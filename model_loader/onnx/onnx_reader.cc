#include "model_loader/onnx/onnx_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "model_loader/expansions/expand.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/graph/verify.h"
#include "model_loader/onnx/axis_names.h"
#include "model_loader/onnx/declared_ports.h"
#include "model_loader/onnx/inline_functions.h"
#include "model_loader/onnx/narrow_types.h"
#include "model_loader/onnx/parse_model.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/sparse_tensor.h"

namespace swizzle {
namespace {

constexpr const char* kOfOneProcessor =
    ": its weights are laid out for one processor; save the model at ONNX Runtime's level ORT_ENABLE_EXTENDED";

// As nodes of a Graph have it.
std::string DomainOf(const onnx::NodeProto& node) { return IsDefaultDomain(node.domain()) ? "" : node.domain(); }

// Whether all nodes are of other operator sets that are known here: what they are written out as is then of any opset.
bool UsesOthersAlone(const onnx::ModelProto& model) {
  const auto& nodes = model.graph().node();
  return !nodes.empty() && std::ranges::all_of(nodes, [](const onnx::NodeProto& node) {
    return !IsDefaultDomain(node.domain()) && FindOnnxOperator(node.domain(), node.op_type()) != nullptr;
  });
}

StatusOr<int64_t> ReadOpset(const onnx::ModelProto& model, const ReadOptions& options) {
  const std::optional<int64_t> opset = DefaultOpset(model);
  if (!opset && UsesOthersAlone(model)) return options.max_opset;
  if (!opset && model.opset_import_size() > 0) {
    const std::string& domain = model.opset_import(0).domain();
    SWIZZLE_RETURN_IF_ERROR(CheckName(domain, "an operator set"));
    return Unimplemented("the model uses only the operator set '", domain, "', which is not supported");
  }
  if (!opset) return InvalidArgument("the model imports no default operator set, or it is truncated");
  if (*opset < options.min_opset || *opset > options.max_opset) {
    return Unimplemented("the model uses opset ", *opset, "; supported are ", options.min_opset, " to ",
                         options.max_opset, ": export it with one of these, or use onnx.version_converter");
  }
  return *opset;
}

class GraphReader {
 public:
  // All must outlive the reader. outer: of the graph around this one, null at the outermost.
  GraphReader(onnx::GraphProto& proto, const ReadOptions& options, TensorSource& source, GraphReader* outer = nullptr)
      : proto_(proto), options_(options), source_(source), outer_(outer) {}

  // Whether the graph is as it was: an operator is not supported, and nothing else has been read.
  bool is_intact() const { return is_intact_; }

  // Values of the graph around this one that this one's last inputs stand for.
  const std::vector<int>& captured() const { return captured_; }

  StatusOr<Graph> Read(int64_t opset) {
    graph_.opset = opset;
    SWIZZLE_RETURN_IF_ERROR(CheckName(proto_.name(), "the graph"));
    graph_.name = proto_.name();
    if (Status supported = CheckSupport(); !supported.ok()) {
      is_intact_ = true;
      return supported;
    }
    SWIZZLE_RETURN_IF_ERROR(ReadInitializers());
    SWIZZLE_RETURN_IF_ERROR(ReadInputs());
    for (int i = 0; i < proto_.node_size(); ++i) SWIZZLE_RETURN_IF_ERROR(ReadNode(i));
    SWIZZLE_RETURN_IF_ERROR(ReadOutputs());
    SWIZZLE_RETURN_IF_ERROR(expansions::ExpandOperators(graph_, options_.find_operator, ReadHints(proto_)));
    SWIZZLE_RETURN_IF_ERROR(options_.any_inputs ? VerifyAnyShape(graph_, options_.find_operator) : Verify(graph_));
    return std::move(graph_);
  }

 private:
  // Unnamed nodes are called after their operator and place.
  std::string NodeName(int index) const {
    const onnx::NodeProto& node = proto_.node(index);
    return node.name().empty() ? Concat(node.op_type(), "_", index) : node.name();
  }

  // Of what is taken as it is, or written out.
  const OperatorSpec* SpecOf(std::string_view domain, std::string_view op) const {
    if (domain == kSwizzleDomain) return nullptr;  // passes alone make such
    const OperatorSpec* const spec = options_.find_operator(domain, op);
    return spec != nullptr ? spec : FindExpandedOperator(domain, op);
  }

  // First of all, so that a model of another kind is told so rather than that some detail of it is wrong.
  Status CheckSupport() const {
    if (proto_.node_size() > options_.max_nodes) {
      return InvalidArgument("the graph has ", proto_.node_size(), " nodes; the limit is ", options_.max_nodes);
    }
    for (int i = 0; i < proto_.node_size(); ++i) {
      const onnx::NodeProto& node = proto_.node(i);
      for (const std::string* name : {&node.name(), &node.op_type(), &node.domain()}) {
        SWIZZLE_RETURN_IF_ERROR(CheckName(*name, Concat("node ", i)));
      }
      if (SpecOf(DomainOf(node), node.op_type()) != nullptr) continue;
      return Unimplemented("operator ", IsDefaultDomain(node.domain()) ? "" : node.domain() + ".", node.op_type(),
                           " (opset ", graph_.opset, ", node '", NodeName(i), "') is not supported",
                           node.domain() == "com.microsoft.nchwc" ? kOfOneProcessor : "");
    }
    return {};
  }

  // Adds a value that is defined here and only here.
  StatusOr<int> Define(Value value, const std::string& what) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(value.name, what));
    if (value.name.empty()) return InvalidArgument(what, " has no name");
    const auto [place, is_new] = values_.emplace(value.name, static_cast<int>(graph_.values.size()));
    if (!is_new) return InvalidArgument("the name '", value.name, "' is defined twice");
    return graph_.AddValue(std::move(value));
  }

  Status ReadInitializers() {
    for (auto& initializer : *proto_.mutable_initializer()) {
      const std::string name = initializer.name();
      SWIZZLE_RETURN_IF_ERROR(CheckName(name, "an initializer"));
      const std::string what = Concat("initializer '", name, "'");
      if (FindNarrowType(initializer.data_type()) != nullptr) narrow_.insert(static_cast<int>(graph_.values.size()));
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(initializer, what, source_));
      if (IsOptionalInput(name)) {
        options_.defaults->insert_or_assign(name, std::move(tensor));
      } else {
        SWIZZLE_RETURN_IF_ERROR(DefineConstant(name, std::move(tensor), what));
      }
    }
    for (auto& initializer : *proto_.mutable_sparse_initializer()) {
      const std::string name = initializer.values().name();
      SWIZZLE_RETURN_IF_ERROR(CheckName(name, "a sparse initializer"));
      const std::string what = Concat("sparse initializer '", name, "'");
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadSparseTensor(initializer, what, source_));
      SWIZZLE_RETURN_IF_ERROR(DefineConstant(name, std::move(tensor), what));
    }
    return {};
  }

  Status DefineConstant(const std::string& name, Tensor tensor, const std::string& what) {
    Shape shape = tensor.shape;
    return Define({name, tensor.dtype, std::move(shape), std::move(tensor)}, what).status();
  }

  bool IsOptionalInput(const std::string& name) const {
    if (outer_ != nullptr || options_.defaults == nullptr) return false;
    const auto port = options_.ports.find(name);
    return port != options_.ports.end() && port->second.is_optional &&
           std::ranges::any_of(proto_.input(), [&](const auto& info) { return info.name() == name; });
  }

  // Before IR version 4 every initializer is listed as an input too.
  bool IsInitializer(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() && graph_.IsConstant(found->second);
  }

  Status ReadInputs() {
    for (const auto& info : proto_.input()) {
      if (IsInitializer(info.name())) continue;
      SWIZZLE_RETURN_IF_ERROR(CheckName(info.name(), "a graph input"));
      const std::string what = Concat("graph input '", info.name(), "'");
      Value input{info.name(), DType::kFloat32, std::nullopt, std::nullopt};
      if (outer_ == nullptr) SWIZZLE_RETURN_IF_ERROR(ReadInput(info, what, input));  // else whatever the node gives it
      SWIZZLE_ASSIGN_OR_RETURN(const int value, Define(std::move(input), what));
      graph_.inputs.push_back(value);
    }
    if (graph_.inputs.empty() && !options_.any_inputs) return InvalidArgument("the graph has no inputs");
    return {};
  }

  Status ReadInput(const onnx::ValueInfoProto& info, const std::string& what, Value& input) const {
    SWIZZLE_ASSIGN_OR_RETURN(const DeclaredPort port, ReadPort(info, what, options_.ports));
    if (!options_.any_inputs) return TakePlannedInput(port, what, input);
    if (!port.dtype) return InvalidArgument(what, " has no element type");
    input.dtype = *port.dtype;
    input.shape = port.shape;
    return {};
  }

  Status ReadNode(int index) {
    onnx::NodeProto& proto = *proto_.mutable_node(index);
    Node node;
    node.op = proto.op_type();
    node.domain = DomainOf(proto);
    node.name = NodeName(index);
    const std::string what = Describe(node);
    for (const std::string& input : proto.input()) {
      SWIZZLE_ASSIGN_OR_RETURN(const int value, FindInput(input, what));
      node.inputs.push_back(value);
    }
    for (const std::string& output : proto.output()) {
      int value = kNoValue;
      if (!output.empty()) {
        SWIZZLE_ASSIGN_OR_RETURN(
            value, Define({output, DType::kFloat32, std::nullopt, std::nullopt}, Concat("an output of ", what)));
      }
      node.outputs.push_back(value);
    }
    const auto inputs = static_cast<size_t>(proto.input_size());
    SWIZZLE_RETURN_IF_ERROR(ReadAttributes(proto, node));
    SWIZZLE_RETURN_IF_ERROR(CheckNarrowTypes(node, inputs));
    const bool captures = node.inputs.size() > inputs;  // those stay where graphs within look for them
    while (!captures && node.inputs.size() > 1 && node.inputs.back() == kNoValue) node.inputs.pop_back();
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // Elements of narrow types are held in wider ones, which few operators may not notice. What graphs within the node
  // capture, behind its own inputs, is looked at there.
  Status CheckNarrowTypes(const Node& node, size_t inputs) {
    const auto end = node.inputs.begin() + static_cast<ptrdiff_t>(inputs);
    const auto found = std::find_if(node.inputs.begin(), end, [this](int value) { return narrow_.contains(value); });
    if (found == end) return {};
    const bool moves = MovesElements(node.op);
    if (!node.domain.empty() || (!moves && !TakesNarrowTypes(node.op))) {
      return Unimplemented(Describe(node), " reads '", graph_.values[static_cast<size_t>(*found)].name,
                           "', which has elements of less than a byte, or of FP8: only DequantizeLinear, Cast and what",
                           " moves elements do");
    }
    if (moves) narrow_.insert(node.outputs.begin(), node.outputs.end());
    return {};
  }

  StatusOr<int> FindInput(const std::string& name, const std::string& what) {
    if (name.empty()) return kNoValue;
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    if (const std::optional<int> captured = Capture(name)) return *captured;
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("an input of ", what)));
    return InvalidArgument(
        what, " reads '", name,
        "', which nothing before it makes: it is undefined, in a cycle, or the nodes are not sorted");
  }

  // A value of a graph around this one, as one more input of this one. Nothing if there is none of this name yet.
  std::optional<int> Capture(const std::string& name) {
    if (outer_ == nullptr) return std::nullopt;
    const auto found = outer_->values_.find(name);
    const std::optional<int> there =
        found != outer_->values_.end() ? std::optional(found->second) : outer_->Capture(name);
    if (!there) return std::nullopt;
    const int value = graph_.AddValue({name, DType::kFloat32, std::nullopt, std::nullopt});
    values_.emplace(name, value);
    graph_.inputs.push_back(value);
    captured_.push_back(*there);
    if (outer_->narrow_.contains(*there)) narrow_.insert(value);
    return value;
  }

  // What the graph captures, the node takes as inputs, behind those that it has anyway.
  StatusOr<Attribute> ReadBody(onnx::GraphProto& proto, size_t formal_inputs, Node& node) {
    GraphReader reader(proto, options_, source_, this);
    Body body;
    StatusOr<Graph> graph = reader.Read(graph_.opset);
    if (!graph.ok()) return Annotate(graph.status(), Describe(node));
    body.graph = *std::move(graph);
    for (const int value : reader.captured()) {
      const auto first = node.inputs.begin() + static_cast<ptrdiff_t>(formal_inputs);
      const auto place = std::find(first, node.inputs.end(), value);
      body.captured.push_back(static_cast<size_t>(place - node.inputs.begin()));
      if (place == node.inputs.end()) node.inputs.push_back(value);
    }
    return Attribute(std::make_shared<const Body>(std::move(body)));
  }

  Status ReadAttributes(onnx::NodeProto& proto, Node& node) {
    const OperatorSpec& spec = *SpecOf(node.domain, node.op);
    for (auto& attribute : *proto.mutable_attribute()) {
      const std::string name = attribute.name();
      SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("an attribute of ", Describe(node))));
      if (!HasAttribute(spec, name, options_.attributes_of_any_opset ? 0 : graph_.opset)) {
        return InvalidArgument(Describe(node), ": attribute '", name, "' is not known in opset ", graph_.opset);
      }
      const std::string what = Concat(Describe(node), ": attribute '", name, "'");
      if (FindNarrowType(attribute.t().data_type()) != nullptr) {
        if (node.op != "Constant") return Unimplemented(what, " has elements of less than a byte, or of FP8");
        narrow_.insert(node.outputs.begin(), node.outputs.end());
      }
      const bool is_graph = attribute.type() == onnx::AttributeProto::GRAPH && options_.any_inputs;
      SWIZZLE_ASSIGN_OR_RETURN(
          Attribute value, is_graph ? ReadBody(*attribute.mutable_g(), static_cast<size_t>(proto.input_size()), node)
                                    : ReadAttribute(attribute, what, source_));
      if (!node.attributes.emplace(name, std::move(value)).second) return InvalidArgument(what, " is given twice");
    }
    return {};
  }

  Status ReadOutputs() {
    if (proto_.output_size() > options_.max_outputs) {
      return InvalidArgument("the graph has ", proto_.output_size(), " outputs; the limit is ", options_.max_outputs);
    }
    for (const auto& info : proto_.output()) {
      SWIZZLE_RETURN_IF_ERROR(CheckName(info.name(), "a graph output"));
      const std::string what = Concat("graph output '", info.name(), "'");
      const auto found = values_.find(info.name());
      const std::optional<int> value = found != values_.end() ? std::optional(found->second) : Capture(info.name());
      if (!value) return InvalidArgument(what, " is made by nothing");
      GraphOutput output{info.name(), *value};
      if (outer_ == nullptr) {
        SWIZZLE_ASSIGN_OR_RETURN(const DeclaredPort port, ReadPort(info, what, options_.ports));
        if (options_.any_inputs) {
          output.dtype = port.dtype;
          output.shape = port.shape;
        }
      }
      graph_.outputs.push_back(std::move(output));
    }
    if (graph_.outputs.empty()) return InvalidArgument("the graph has no outputs");
    return {};
  }

  onnx::GraphProto& proto_;
  const ReadOptions& options_;
  TensorSource& source_;
  GraphReader* const outer_;
  bool is_intact_ = false;
  std::vector<int> captured_;
  Graph graph_;
  std::unordered_map<std::string, int> values_;  // by name
  std::unordered_set<int> narrow_;               // values that are held in wider types than the file has them in
};

AxisNames NamesOf(const onnx::GraphProto& graph) {
  AxisNames names;
  for (const auto& input : graph.input()) {
    std::vector<std::string>& axes = names[input.name()];
    for (const auto& dimension : input.type().tensor_type().shape().dim()) axes.push_back(dimension.dim_param());
  }
  return names;
}

}  // namespace

struct OnnxSource::Parsed {
  std::optional<onnx::ModelProto> proto;
};

OnnxSource::OnnxSource(std::span<const std::byte> bytes) : bytes_(bytes), parsed_(std::make_shared<Parsed>()) {}

ReadOptions ReadOptionsFor(const std::filesystem::path& file) {
  ReadOptions options;
  options.external_folder = ModelFolder::Of(file);
  return options;
}

StatusOr<Graph> ReadOnnx(const OnnxSource& model, const ReadOptions& options) {
  AxisNames names;
  return ReadOnnx(model, options, names);
}

StatusOr<Graph> ReadOnnx(const OnnxSource& model, const ReadOptions& options, AxisNames& names) {
  std::optional<onnx::ModelProto>& parsed = model.parsed().proto;
  if (!parsed) {
    SWIZZLE_ASSIGN_OR_RETURN(parsed, ParseModel(model, options.max_model_bytes));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t opset, ReadOpset(*parsed, options));
  onnx::ModelProto proto = *std::exchange(parsed, std::nullopt);
  SWIZZLE_RETURN_IF_ERROR(InlineFunctions(proto, {.max_nodes = options.max_nodes}));
  for (const std::string* name : {&proto.producer_name(), &proto.producer_version()}) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(*name, "the model's producer"));
  }
  names = NamesOf(proto.graph());
  const bool sequences = !options.any_inputs && HasSequences(proto.graph());
  ReadOptions reading = options;
  if (sequences) {
    reading.any_inputs = true;
    reading.find_operator = FindSequenceOperator;
  }
  TensorSource source(reading);
  GraphReader reader(*proto.mutable_graph(), reading, source);
  StatusOr<Graph> read = reader.Read(opset);
  if (reader.is_intact()) parsed = std::move(proto);
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, std::move(read));
  if (options.revise) SWIZZLE_RETURN_IF_ERROR(options.revise(graph));
  if (sequences) SWIZZLE_RETURN_IF_ERROR(ReadSequences(graph));
  graph.producer = proto.producer_name();
  if (!proto.producer_version().empty()) graph.producer += " " + proto.producer_version();
  return graph;
}

}  // namespace swizzle
