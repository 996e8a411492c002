#include "model_loader/onnx/onnx_rewrite.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/sparse_tensor.h"
#include "model_loader/onnx/weight_sources.h"

namespace swizzle {
namespace {

constexpr size_t kMaxModelBytes = std::numeric_limits<int>::max();  // the most a protobuf message can have

StatusOr<onnx::ModelProto> Parse(std::span<const std::byte> bytes) {
  onnx::ModelProto model;
  if (bytes.size() > kMaxModelBytes || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !model.has_graph()) {
    return NotOnnx(bytes);
  }
  return model;
}

StatusOr<std::vector<std::byte>> Serialise(const onnx::ModelProto& model) {
  const size_t size = model.ByteSizeLong();
  if (size > kMaxModelBytes) return MakeError(StatusCode::kResourceExhausted, "the model is too large for one file");
  std::vector<std::byte> bytes(size);
  model.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

int64_t GroupOf(const onnx::NodeProto& conv) {
  for (const auto& attribute : conv.attribute()) {
    if (attribute.name() == "group") return attribute.i();
  }
  return 1;
}

bool IsWeightInput(const onnx::NodeProto& node, int input) {
  if (!IsDefaultDomain(node.domain())) return false;
  if (node.op_type() == "Conv") return input == 1 && GroupOf(node) == 1;
  if (node.op_type() == "Gemm") return input == 1;
  return node.op_type() == "MatMul";
}

bool HasOutputsLast(const onnx::NodeProto& node, int input) {
  if (node.op_type() == "MatMul") return input == 1;
  if (node.op_type() != "Gemm") return false;
  const auto turned = [](const auto& attribute) { return attribute.name() == "transB" && attribute.i() != 0; };
  return std::none_of(node.attribute().begin(), node.attribute().end(), turned);
}

bool IsConstant(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && IsDefaultDomain(node.domain()) && node.input_size() == 0 &&
         node.output_size() == 1;
}

// How the nodes of a graph use one initializer or Constant node.
struct Usage {
  std::vector<std::string> nodes;  // that have names
  int readers = 0;
  bool as_weight_only = true;
  bool outputs_last = false, both_ways = false;  // as of OnnxWeight
  bool on_the_left = false;                      // of a MatMul: then it is a matrix, no stack of them
};

class UsageFinder {
 public:
  explicit UsageFinder(const onnx::GraphProto& graph) {
    for (const auto& initializer : graph.initializer()) source_[initializer.name()] = initializer.name();
    for (const auto& sparse : graph.sparse_initializer()) source_[sparse.values().name()] = sparse.values().name();
    for (const auto& node : graph.node()) Visit(node);
    for (const auto& output : graph.output()) ExcludeSourceOf(output.name());
  }

  // Null for a constant, of so many dimensions, that is not a weight.
  const Usage* Find(const std::string& constant, int rank) const {
    const auto found = usages_.find(constant);
    if (found == usages_.end() || !found->second.as_weight_only) return nullptr;
    return rank >= 2 && (rank == 2 || !found->second.on_the_left) ? &found->second : nullptr;
  }

 private:
  void Visit(const onnx::NodeProto& node) {
    if (IsConstant(node)) source_[node.output(0)] = node.output(0);
    if (node.op_type() == "Identity" && IsDefaultDomain(node.domain()) && node.input_size() == 1 &&
        node.output_size() == 1) {
      if (const auto source = source_.find(node.input(0)); source != source_.end()) {
        source_[node.output(0)] = source->second;
      }
      return;
    }
    for (int i = 0; i < node.input_size(); ++i) {
      const auto source = source_.find(node.input(i));
      if (source != source_.end()) Add(node, i, usages_[source->second]);
    }
    ExcludeWhatSubgraphsRead(node);
  }

  static void Add(const onnx::NodeProto& node, int input, Usage& usage) {
    if (!node.name().empty()) usage.nodes.push_back(node.name());
    const bool outputs_last = HasOutputsLast(node, input);
    if (usage.readers++ == 0) usage.outputs_last = outputs_last;
    usage.both_ways |= usage.outputs_last != outputs_last;
    usage.as_weight_only &= IsWeightInput(node, input);
    usage.on_the_left |= input == 0;
  }

  void ExcludeWhatSubgraphsRead(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) ExcludeWhatIsReadIn(attribute.g());
      for (const auto& graph : attribute.graphs()) ExcludeWhatIsReadIn(graph);
    }
  }
  void ExcludeWhatIsReadIn(const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      for (const auto& input : node.input()) ExcludeSourceOf(input);
      ExcludeWhatSubgraphsRead(node);
    }
    for (const auto& output : graph.output()) ExcludeSourceOf(output.name());
  }

  void ExcludeSourceOf(const std::string& name) {
    if (const auto source = source_.find(name); source != source_.end()) usages_[source->second].as_weight_only = false;
  }

  std::unordered_map<std::string, std::string> source_;  // value -> the initializer or Constant's output that it is
  std::unordered_map<std::string, Usage> usages_;        // by initializer or Constant's output
};

// Puts all that a model holds in external files inside, those of subgraphs and functions included.
class Embedder {
 public:
  explicit Embedder(const ReadOptions& options) : source_(options) {}

  Status Embed(onnx::ModelProto& model) {
    SWIZZLE_RETURN_IF_ERROR(Embed(*model.mutable_graph()));
    for (auto& function : *model.mutable_functions()) SWIZZLE_RETURN_IF_ERROR(EmbedNodes(function));
    for (auto& training : *model.mutable_training_info()) {
      if (training.has_initialization()) SWIZZLE_RETURN_IF_ERROR(Embed(*training.mutable_initialization()));
      if (training.has_algorithm()) SWIZZLE_RETURN_IF_ERROR(Embed(*training.mutable_algorithm()));
    }
    return {};
  }

 private:
  Status Embed(onnx::GraphProto& graph) {
    for (auto& tensor : *graph.mutable_initializer()) SWIZZLE_RETURN_IF_ERROR(Embed(tensor));
    for (auto& sparse : *graph.mutable_sparse_initializer()) SWIZZLE_RETURN_IF_ERROR(Embed(sparse));
    return EmbedNodes(graph);
  }

  template <typename GraphOrFunction>
  Status EmbedNodes(GraphOrFunction& proto) {
    for (auto& node : *proto.mutable_node()) {
      for (auto& attribute : *node.mutable_attribute()) SWIZZLE_RETURN_IF_ERROR(Embed(attribute));
    }
    return {};
  }

  Status Embed(onnx::AttributeProto& attribute) {
    if (attribute.has_t()) SWIZZLE_RETURN_IF_ERROR(Embed(*attribute.mutable_t()));
    if (attribute.has_sparse_tensor()) SWIZZLE_RETURN_IF_ERROR(Embed(*attribute.mutable_sparse_tensor()));
    if (attribute.has_g()) SWIZZLE_RETURN_IF_ERROR(Embed(*attribute.mutable_g()));
    for (auto& tensor : *attribute.mutable_tensors()) SWIZZLE_RETURN_IF_ERROR(Embed(tensor));
    for (auto& sparse : *attribute.mutable_sparse_tensors()) SWIZZLE_RETURN_IF_ERROR(Embed(sparse));
    for (auto& graph : *attribute.mutable_graphs()) SWIZZLE_RETURN_IF_ERROR(Embed(graph));
    return {};
  }

  Status Embed(onnx::SparseTensorProto& sparse) {
    if (sparse.has_values()) SWIZZLE_RETURN_IF_ERROR(Embed(*sparse.mutable_values()));
    if (sparse.has_indices()) SWIZZLE_RETURN_IF_ERROR(Embed(*sparse.mutable_indices()));
    return {};
  }

  Status Embed(onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckName(tensor.name(), "a tensor"));
    return EmbedExternalData(tensor, Concat("tensor '", tensor.name(), "'"), source_);
  }

  TensorSource source_;
};

Status CheckIsFp32(const Tensor& tensor, const std::string& what) {
  if (tensor.dtype == DType::kFloat32) return {};
  return Unimplemented(what, " is a weight of ", DTypeName(tensor.dtype), "; only FP32 weights can be edited");
}

void WriteFloats(std::span<const float> floats, onnx::TensorProto& proto) {
  if (proto.has_raw_data()) {
    const auto bytes = std::as_bytes(floats);
    proto.mutable_raw_data()->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    proto.mutable_float_data()->Assign(floats.begin(), floats.end());
  }
}

// Edits the weights of one graph in place.
class WeightEditor {
 public:
  using Edit = std::function<void(const OnnxWeight&, std::span<float>)>;

  WeightEditor(const onnx::GraphProto& graph, const ReadOptions& options, const Edit& edit)
      : usages_(graph), source_(options), edit_(edit) {}

  Status VisitAll(onnx::GraphProto& graph) {
    for (auto& dense : *graph.mutable_initializer()) {
      SWIZZLE_RETURN_IF_ERROR(Visit(dense, dense.name(), "initializer"));
    }
    for (auto& sparse : *graph.mutable_sparse_initializer()) {
      SWIZZLE_RETURN_IF_ERROR(Visit(sparse, sparse.values().name(), "sparse initializer"));
    }
    for (auto& node : *graph.mutable_node()) {
      if (!IsConstant(node)) continue;
      for (auto& value : *node.mutable_attribute()) {
        if (value.has_t()) SWIZZLE_RETURN_IF_ERROR(Visit(*value.mutable_t(), node.output(0), "constant"));
        if (!value.has_sparse_tensor()) continue;
        SWIZZLE_RETURN_IF_ERROR(Visit(*value.mutable_sparse_tensor(), node.output(0), "sparse constant"));
      }
    }
    return {};
  }

 private:
  // Whichever field of the tensor holds its elements.
  Status Visit(onnx::TensorProto& constant, const std::string& name, const char* kind) {
    const Usage* usage = usages_.Find(name, constant.dims_size());
    if (usage == nullptr) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("a ", kind)));
    const std::string what = Concat(kind, " '", name, "'");
    onnx::TensorProto copy = constant;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(copy, what, source_));
    SWIZZLE_RETURN_IF_ERROR(CheckIsFp32(tensor, what));
    Apply(*usage, name, tensor);
    WriteFloats(tensor.floats(), constant);
    return {};
  }

  Status Visit(onnx::SparseTensorProto& constant, const std::string& name, const char* kind) {
    const Usage* usage = usages_.Find(name, constant.dims_size());
    if (usage == nullptr) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("a ", kind)));
    const std::string what = Concat(kind, " '", name, "'");
    onnx::SparseTensorProto copy = constant;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadSparseTensor(copy, what, source_));
    SWIZZLE_RETURN_IF_ERROR(CheckIsFp32(tensor, what));
    Apply(*usage, name, tensor);
    WriteSparseTensor(tensor.floats(), constant);
    return {};
  }

  void Apply(const Usage& usage, const std::string& name, Tensor& tensor) const {
    OnnxWeight weight{usage.nodes, tensor.shape, usage.outputs_last, usage.both_ways};
    weight.names.push_back(name);
    edit_(weight, tensor.floats());
  }

  const UsageFinder usages_;
  TensorSource source_;
  const Edit& edit_;
};

}  // namespace

int64_t OnnxWeight::taps() const {
  int64_t taps = 1;
  for (size_t i = 2; i < shape.size() && !outputs_last; ++i) taps *= shape[i];
  return taps;
}

StatusOr<std::vector<std::byte>> RewriteOnnxWeights(
    std::span<const std::byte> model, const std::function<void(const OnnxWeight&, std::span<float>)>& edit,
    const ReadOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(onnx::ModelProto proto, Parse(model));
  ReadOptions one_file = options;
  one_file.max_external_bytes = std::min<int64_t>(options.max_external_bytes, kMaxModelBytes);
  const Status embedded = Embedder(one_file).Embed(proto);
  if (!embedded.ok() && one_file.max_external_bytes < options.max_external_bytes) {
    return Annotate(embedded, Concat("edited models are held as one file, of at most ", kMaxModelBytes, " bytes"));
  }
  SWIZZLE_RETURN_IF_ERROR(embedded);
  SWIZZLE_RETURN_IF_ERROR(WeightEditor(proto.graph(), options, edit).VisitAll(*proto.mutable_graph()));
  return Serialise(proto);
}

bool IsQuantisedOnnx(std::span<const std::byte> model) {
  const StatusOr<onnx::ModelProto> proto = Parse(model);
  return proto.ok() && HasQuantisingNodes(proto->graph());
}

StatusOr<DetachedModel> DetachInitializers(std::span<const std::byte> model, int64_t least_bytes,
                                           const ReadOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(onnx::ModelProto proto, Parse(model));
  TakeConstants(*proto.mutable_graph(), /*least_rank=*/2);
  DetachedModel detached;
  TensorSource source(options);
  std::vector<onnx::TensorProto*> emptied;
  for (onnx::TensorProto& initializer : *proto.mutable_graph()->mutable_initializer()) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(initializer.name(), "an initializer"));
    onnx::TensorProto left;
    left.set_name(initializer.name());
    left.set_data_type(initializer.data_type());
    *left.mutable_dims() = initializer.dims();
    if (initializer.data_type() == onnx::TensorProto::STRING) continue;
    const std::string what = Concat("initializer '", left.name(), "'");
    onnx::TensorProto whole = initializer;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(whole, what, source));
    if (static_cast<int64_t>(tensor.bytes.size()) < least_bytes) continue;
    initializer.Swap(&left);
    detached.tensors.push_back(std::move(tensor));
    emptied.push_back(&initializer);
  }
  SWIZZLE_RETURN_IF_ERROR(Embedder(options).Embed(proto));
  for (size_t i = 0; i < emptied.size(); ++i) {
    emptied[i]->set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto& entry = *emptied[i]->add_external_data();
    entry.set_key("location");
    entry.set_value(std::to_string(i));
  }
  SWIZZLE_ASSIGN_OR_RETURN(detached.model, Serialise(proto));
  return detached;
}

}  // namespace swizzle
