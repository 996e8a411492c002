#include "model_loader/text/dense.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/check.h"
#include "kernels/format/transpose.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/safetensors/safetensors_file.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostConfigBytes = int64_t{1} << 20, kMostTensorBytes = int64_t{1} << 30;

// The last part of PyTorch's name, and the operator that it is in ONNX.
constexpr auto kActivations = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"Identity", ""},
    {"Tanh", "Tanh"},
    {"ReLU", "Relu"},
    {"Sigmoid", "Sigmoid"},
});

StatusOr<std::string> ActivationOf(const Json& config) {
  const auto found = config.find("activation_function");
  const bool is_text = found != config.end() && found->is_string();
  const std::string name = is_text ? found->get<std::string>() : "torch.nn.modules.activation.Tanh";
  for (const auto& [of_torch, of_onnx] : kActivations) {
    if (name.substr(name.rfind('.') + 1) == of_torch) return std::string(of_onnx);
  }
  return Unimplemented("its activation_function is ", QuotedName(name),
                       "; supported are Identity, Tanh, ReLU and Sigmoid");
}

// A layer may take, or write, something else than the vector, as one of tokens' states does.
Status CheckPlaces(const Json& config) {
  for (const char* const key : {"module_input_name", "module_output_name"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null() || *found == "sentence_embedding") continue;
    return Unimplemented("its ", key, " is ", QuotedName(found->dump()), "; supported is sentence_embedding");
  }
  return {};
}

StatusOr<Tensor> Take(const SafetensorsFile& file, const std::string& name, size_t rank) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) return InvalidArgument("it lacks the tensor '", name, "'");
  if (found->second.shape.size() != rank) {
    return InvalidArgument("its tensor '", name, "' has the shape ", ShapeText(found->second.shape), "; it must have ",
                           rank, rank == 1 ? " dimension" : " dimensions");
  }
  return ToFloat32(CopyOf(found->second), Concat("its tensor '", name, "'"));
}

Status TakeTensors(const std::string& bytes, DenseLayer& layer) {
  SWIZZLE_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(std::as_bytes(std::span(bytes))));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor weight, Take(file, "linear.weight", 2));
  layer.weight =
      Tensor::Floats({weight.shape[1], weight.shape[0]}, Transposed(weight.floats(), weight.shape[0], weight.shape[1]));
  if (!file.tensors.contains("linear.bias")) return {};
  SWIZZLE_ASSIGN_OR_RETURN(layer.bias, Take(file, "linear.bias", 1));
  if (layer.bias->shape[0] == weight.shape[0]) return {};
  return InvalidArgument("its linear.bias has ", layer.bias->shape[0], " elements, and linear.weight ", weight.shape[0],
                         " rows");
}

}  // namespace

StatusOr<DenseLayer> ReadDense(const ModelFolder& folder, const std::string& path) {
  const std::string config_file = (std::filesystem::path(path) / "config.json").string();
  const std::string tensor_file = (std::filesystem::path(path) / "model.safetensors").string();
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text,
                           ContainedFile::Read(folder, config_file, "the file", kMostConfigBytes));
  const StatusOr<Json> config = ParseStrictJson(text);
  if (!config.ok()) return Annotate(config.status(), config_file);
  SWIZZLE_RETURN_IF_ERROR(Annotate(CheckPlaces(*config), config_file));
  DenseLayer layer;
  layer.name = path;
  StatusOr<std::string> activation = ActivationOf(*config);
  if (!activation.ok()) return Annotate(activation.status(), config_file);
  layer.activation = *std::move(activation);
  SWIZZLE_ASSIGN_OR_RETURN(const std::string bytes,
                           ContainedFile::Read(folder, tensor_file, "the file", kMostTensorBytes));
  SWIZZLE_RETURN_IF_ERROR(Annotate(TakeTensors(bytes, layer), tensor_file));
  return layer;
}

Status AddDense(const DenseLayer& layer, Graph& graph) {
  SWIZZLE_CHECK(graph.outputs.size() == 1);
  GraphOutput& output = graph.outputs[0];
  const int64_t width = output.shape ? output.shape->back() : -1;
  if (width >= 0 && width != layer.weight.shape[0]) {
    return InvalidArgument("module ", layer.name, " takes ", layer.weight.shape[0],
                           " numbers, and vectors before it have ", width);
  }
  const auto add = [&](const std::string& op, std::vector<int> inputs) {
    const std::string name = Concat(layer.name, "/", op);
    const int value = graph.AddValue({name + "_output", DType::kFloat32, std::nullopt, std::nullopt});
    graph.nodes.push_back({op, "", name, std::move(inputs), {value}, {}});
    return value;
  };
  int value = add("MatMul", {output.value, graph.AddConstant(layer.name + ".linear.weight", layer.weight)});
  if (layer.bias) value = add("Add", {value, graph.AddConstant(layer.name + ".linear.bias", *layer.bias)});
  if (!layer.activation.empty()) value = add(layer.activation, {value});
  output.value = value;
  output.shape = Shape{-1, layer.weight.shape[1]};
  return {};
}

}  // namespace swizzle::text
