#include "model_loader/onnx/onnx_rewrite.h"

#include <algorithm>
#include <limits>
#include <map>

#include "model_loader/onnx/narrow_types.h"
#include "model_loader/onnx/parse_model.h"
#include "model_loader/onnx/proto_values.h"
#include "model_loader/onnx/sparse_tensor.h"
#include "model_loader/onnx/weight_sources.h"
#include "model_loader/onnx/weight_uses.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

constexpr size_t kMaxModelBytes = std::numeric_limits<int>::max();  // the most a protobuf message can have

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

// FP32 elements of what layers read through a Cast; of other weights they have to be that.
Status MakeFp32(bool is_indirect, const std::string& what, Tensor& tensor) {
  if (tensor.dtype == DType::kFloat32) return {};
  if (!is_indirect) {
    return Unimplemented(what, " is a weight of ", DTypeName(tensor.dtype), "; only FP32 weights can be edited");
  }
  Tensor floats{DType::kFloat32, tensor.shape, std::vector<std::byte>(tensor.elements() * sizeof(float))};
  VisitElementType(tensor.dtype, [&](auto element) {
    const auto* const from = reinterpret_cast<const decltype(element)*>(tensor.bytes.data());
    const std::span<float> to = floats.floats();
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(Widened(from[i]));
  });
  tensor = std::move(floats);
  return {};
}

// The elements as `dtype`, which they were made FP32 of.
std::vector<std::byte> NarrowedBytes(std::span<const float> floats, DType dtype) {
  std::vector<std::byte> bytes(floats.size() * ElementBytes(dtype));
  VisitElementType(dtype, [&](auto element) {
    auto* const to = reinterpret_cast<decltype(element)*>(bytes.data());
    for (size_t i = 0; i < floats.size(); ++i) to[i] = Narrowed<decltype(element)>(floats[i]);
  });
  return bytes;
}

void WriteElements(std::span<const float> floats, DType dtype, onnx::TensorProto& proto) {
  if (dtype == DType::kFloat32 && !proto.has_raw_data()) {
    proto.mutable_float_data()->Assign(floats.begin(), floats.end());
    return;
  }
  const std::vector<std::byte> bytes = NarrowedBytes(floats, dtype);
  proto.clear_int32_data();
  proto.mutable_raw_data()->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

OnnxWeight WeightOf(const WeightUse& use, const std::string& name, const Shape& shape) {
  OnnxWeight weight{use.nodes, shape, use.outputs_last, use.both_ways, use.is_indirect};
  weight.names.push_back(name);
  return weight;
}

// Of initializers of whole numbers that layers multiply with, by name, what a layer says of it: whether its last
// dimension is the outputs'.
std::map<std::string, bool> WholeWeights(const onnx::GraphProto& graph) {
  struct Reading {
    const char* op;
    int input;
  };
  constexpr Reading kReadings[] = {{"Conv", 1},          {"Gemm", 1},        {"MatMul", 1},       {"ConvInteger", 1},
                                   {"MatMulInteger", 1}, {"QLinearConv", 3}, {"QLinearMatMul", 3}};
  std::map<std::string, std::string> dequantised;  // what DequantizeLinear makes, of what
  std::map<std::string, bool> weights;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "DequantizeLinear" && node.input_size() > 0) dequantised[node.output(0)] = node.input(0);
    const auto reading = std::ranges::find_if(kReadings, [&](const Reading& of) { return node.op_type() == of.op; });
    if (reading == std::end(kReadings) || node.input_size() <= reading->input) continue;
    if (NumberOf(node, "group", 1) != 1) continue;
    const std::string& input = node.input(reading->input);
    const auto behind = dequantised.find(input);
    const bool by_matmul = node.op_type().find("MatMul") != std::string::npos;
    const bool by_gemm = node.op_type() == "Gemm" && NumberOf(node, "transB", 0) == 0;
    weights.try_emplace(behind == dequantised.end() ? input : behind->second, by_matmul || by_gemm);
  }
  return weights;
}

// Edits the weights of a graph, and of those within its nodes, in place.
class WeightEditor {
 public:
  using Edit = std::function<void(const OnnxWeight&, std::span<float>)>;

  WeightEditor(const onnx::GraphProto& graph, const ReadOptions& options, const Edit& edit)
      : uses_(graph), source_(options), edit_(edit) {}

  Status VisitAll(onnx::GraphProto& graph) {
    for (auto& dense : *graph.mutable_initializer()) {
      SWIZZLE_RETURN_IF_ERROR(Visit(dense, dense.name(), "initializer"));
    }
    for (auto& sparse : *graph.mutable_sparse_initializer()) {
      SWIZZLE_RETURN_IF_ERROR(Visit(sparse, sparse.values().name(), "sparse initializer"));
    }
    for (auto& node : *graph.mutable_node()) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) SWIZZLE_RETURN_IF_ERROR(VisitAll(*attribute.mutable_g()));
        for (auto& within : *attribute.mutable_graphs()) SWIZZLE_RETURN_IF_ERROR(VisitAll(within));
      }
      if (!IsConstantNode(node)) continue;
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
    const WeightUse* const use = uses_.Find(&constant, constant.dims_size());
    if (use == nullptr) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("a ", kind)));
    const std::string what = Concat(kind, " '", name, "'");
    onnx::TensorProto copy = constant;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(copy, what, source_));
    const DType dtype = tensor.dtype;
    SWIZZLE_RETURN_IF_ERROR(MakeFp32(use->is_indirect, what, tensor));
    Apply(*use, name, tensor);
    WriteElements(tensor.floats(), dtype, constant);
    return {};
  }

  Status Visit(onnx::SparseTensorProto& constant, const std::string& name, const char* kind) {
    const WeightUse* const use = uses_.Find(&constant, constant.dims_size());
    if (use == nullptr) return {};
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("a ", kind)));
    const std::string what = Concat(kind, " '", name, "'");
    onnx::SparseTensorProto copy = constant;
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadSparseTensor(copy, what, source_));
    SWIZZLE_RETURN_IF_ERROR(MakeFp32(/*is_indirect=*/false, what, tensor));
    Apply(*use, name, tensor);
    WriteSparseTensor(tensor.floats(), constant);
    return {};
  }

  void Apply(const WeightUse& use, const std::string& name, Tensor& tensor) const {
    edit_(WeightOf(use, name, tensor.shape), tensor.floats());
  }

  const WeightUses uses_;
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
  SWIZZLE_ASSIGN_OR_RETURN(onnx::ModelProto proto, ParseModel(model));
  ReadOptions one_file = options;
  one_file.max_external_bytes = std::min<int64_t>(options.max_external_bytes, kMaxModelBytes);
  const Status embedded = Embedder(one_file).Embed(proto);
  if (!embedded.ok() && one_file.max_external_bytes < options.max_external_bytes) {
    return Annotate(embedded, Concat("edited models are held as one file, of at most ", kMaxModelBytes, " bytes"));
  }
  SWIZZLE_RETURN_IF_ERROR(embedded);
  SWIZZLE_RETURN_IF_ERROR(WeightEditor(proto.graph(), options, edit).VisitAll(*proto.mutable_graph()));
  return Serialised(proto);
}

std::vector<std::string> UnseenOnnxWeights(std::span<const std::byte> model) {
  const StatusOr<onnx::ModelProto> proto = ParseModel(model);
  return proto.ok() ? WeightUses(proto->graph()).Unseen() : std::vector<std::string>();
}

bool IsQuantisedOnnx(std::span<const std::byte> model) {
  const StatusOr<onnx::ModelProto> proto = ParseModel(model);
  return proto.ok() && HasQuantisingNodes(proto->graph());
}

StatusOr<DetachedModel> DetachInitializers(const OnnxSource& model, int64_t least_bytes, const ReadOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(onnx::ModelProto proto, ParseModel(model, options.max_model_bytes));
  TakeConstants(*proto.mutable_graph(), /*least_rank=*/2);
  DetachedModel detached;
  const WeightUses uses(proto.graph());
  const std::map<std::string, bool> wholes = WholeWeights(proto.graph());
  TensorSource source(options);
  std::vector<onnx::TensorProto*> emptied;
  for (onnx::TensorProto& initializer : *proto.mutable_graph()->mutable_initializer()) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(initializer.name(), "an initializer"));
    const bool is_narrow = FindNarrowType(initializer.data_type()) != nullptr;  // its elements are held in wider ones
    if (is_narrow || initializer.data_type() == onnx::TensorProto::STRING) continue;
    const std::string what = Concat("initializer '", initializer.name(), "'");
    SWIZZLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOfProto(initializer.data_type(), what));
    const Shape shape(initializer.dims().begin(), initializer.dims().end());
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes({dtype, shape, {}}, what, options));
    if (bytes < least_bytes) continue;
    onnx::TensorProto whole;
    whole.Swap(&initializer);
    initializer.set_name(whole.name());
    initializer.set_data_type(whole.data_type());
    *initializer.mutable_dims() = whole.dims();
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(whole, what, source));
    const WeightUse* const use = uses.Find(&initializer, initializer.dims_size());
    std::optional<OnnxWeight>& weight = detached.weights.emplace_back();
    if (use != nullptr) weight = WeightOf(*use, initializer.name(), tensor.shape);
    const auto of_bytes = wholes.find(initializer.name());
    const bool is_byte = tensor.dtype == DType::kInt8 || tensor.dtype == DType::kUint8;
    if (is_byte && of_bytes != wholes.end()) weight = OnnxWeight{{of_bytes->first}, tensor.shape, of_bytes->second};
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
  SWIZZLE_ASSIGN_OR_RETURN(detached.model, Serialised(proto));
  return detached;
}

}  // namespace swizzle
