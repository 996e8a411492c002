#include "model_loader/onnx/onnx_rewrite.h"

#include <limits>
#include <unordered_map>

#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

constexpr size_t kMaxModelBytes = std::numeric_limits<int>::max();  // the most a protobuf message can have

StatusOr<onnx::ModelProto> Parse(std::span<const std::byte> bytes) {
  onnx::ModelProto model;
  if (bytes.size() > kMaxModelBytes || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !model.has_graph()) {
    return InvalidArgument("this is not an ONNX model, or it is truncated");
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
  if (node.op_type() == "Conv") return input == 1 && GroupOf(node) == 1;
  if (node.op_type() == "Gemm") return input == 1;
  return node.op_type() == "MatMul";
}

// How the nodes of a graph use one initializer.
struct Usage {
  std::vector<std::string> nodes;
  bool as_weight_only = true;
};

class UsageFinder {
 public:
  explicit UsageFinder(const onnx::GraphProto& graph) {
    for (const auto& initializer : graph.initializer()) source_[initializer.name()] = initializer.name();
    for (const auto& node : graph.node()) Visit(node);
    for (const auto& output : graph.output()) ExcludeSourceOf(output.name());
  }

  // Null for an initializer that is not a weight.
  const Usage* Find(const std::string& initializer) const {
    const auto found = usages_.find(initializer);
    return found != usages_.end() && found->second.as_weight_only ? &found->second : nullptr;
  }

 private:
  void Visit(const onnx::NodeProto& node) {
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1) {
      if (const auto source = source_.find(node.input(0)); source != source_.end()) {
        source_[node.output(0)] = source->second;
      }
      return;
    }
    for (int i = 0; i < node.input_size(); ++i) {
      const auto source = source_.find(node.input(i));
      if (source == source_.end()) continue;
      Usage& usage = usages_[source->second];
      if (!node.name().empty()) usage.nodes.push_back(node.name());
      usage.as_weight_only &= IsWeightInput(node, i);
    }
  }

  void ExcludeSourceOf(const std::string& name) {
    if (const auto source = source_.find(name); source != source_.end()) usages_[source->second].as_weight_only = false;
  }

  std::unordered_map<std::string, std::string> source_;  // value -> the initializer that it is
  std::unordered_map<std::string, Usage> usages_;        // by initializer
};

// The elements of a weight, whichever field of the tensor holds them.
StatusOr<std::vector<float>> ReadFloats(const onnx::TensorProto& proto) {
  const std::string what = Concat("initializer '", proto.name(), "'");
  onnx::TensorProto copy = proto;
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor tensor, ReadTensor(copy, what, {}));
  if (tensor.dtype != DType::kFloat32) {
    return Unimplemented(what, " is a weight of ", DTypeName(tensor.dtype), "; only FP32 weights can be edited");
  }
  return std::vector<float>(tensor.floats().begin(), tensor.floats().end());
}

void WriteFloats(std::span<const float> floats, onnx::TensorProto& proto) {
  if (proto.has_raw_data()) {
    const auto bytes = std::as_bytes(floats);
    proto.mutable_raw_data()->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    proto.mutable_float_data()->Assign(floats.begin(), floats.end());
  }
}

}  // namespace

StatusOr<std::vector<std::byte>> RewriteOnnxWeights(
    std::span<const std::byte> model, const std::function<void(const OnnxWeight&, std::span<float>)>& edit) {
  SWIZZLE_ASSIGN_OR_RETURN(onnx::ModelProto proto, Parse(model));
  const UsageFinder usages(proto.graph());
  for (auto& initializer : *proto.mutable_graph()->mutable_initializer()) {
    const Usage* usage = usages.Find(initializer.name());
    if (usage == nullptr || initializer.dims_size() < 2) continue;
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<float> floats, ReadFloats(initializer));
    OnnxWeight weight{usage->nodes, Shape(initializer.dims().begin(), initializer.dims().end())};
    weight.names.push_back(initializer.name());
    edit(weight, floats);
    WriteFloats(floats, initializer);
  }
  return Serialise(proto);
}

}  // namespace swizzle
