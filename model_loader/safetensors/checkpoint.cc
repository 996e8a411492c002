#include "model_loader/safetensors/checkpoint.h"

#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "model_loader/files/read_file.h"
#include "model_loader/graph/verify.h"
#include "model_loader/safetensors/bert_graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/compressed_tensors.h"
#include "model_loader/safetensors/compression_config.h"
#include "model_loader/safetensors/deberta_graph.h"
#include "model_loader/safetensors/encoder_config.h"
#include "model_loader/safetensors/modernbert_graph.h"
#include "model_loader/safetensors/nomic_bert_graph.h"
#include "model_loader/safetensors/qwen_graph.h"
#include "model_loader/safetensors/sharded_checkpoint.h"
#include "model_loader/safetensors/tensor_names.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr char kSingleFile[] = "model.safetensors";

// Of the tensors, which are decompressed first: what config.json may leave to them is told by their names.
struct Encoder {
  EncoderConfig config;
  std::string prefix;
};

StatusOr<Encoder> ReadEncoder(std::string_view config, const TensorMap& tensors) {
  Encoder encoder;
  SWIZZLE_ASSIGN_OR_RETURN(encoder.prefix, EncoderPrefix(tensors));
  SWIZZLE_ASSIGN_OR_RETURN(encoder.config, ParseEncoderConfig(config, TypeByNames(tensors, encoder.prefix)));
  return encoder;
}

// What can be told before any tensor is read: a model of another kind is told so at once.
Status CheckConfig(std::string_view config) {
  SWIZZLE_RETURN_IF_ERROR(ReadCompression(config).status());
  return ParseEncoderConfig(config, /*type_of_tensors=*/"bert").status();
}

StatusOr<Graph> BuildGraph(const EncoderConfig& config, CheckpointWeights weights) {
  return std::visit([&](const auto& family) { return BuildEncoderGraph(family, std::move(weights)); }, config);
}

StatusOr<Graph> MakeGraph(const Encoder& encoder, const Compression& compression, TensorMap tensors,
                          const CheckpointOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(CheckpointWeights weights,
                           CheckpointWeights::From(encoder.config, encoder.prefix, compression, std::move(tensors)));
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, BuildGraph(encoder.config, std::move(weights)));
  if (options.revise) SWIZZLE_RETURN_IF_ERROR(options.revise(graph));
  for (const Node& node : graph.nodes) {
    if (options.find_operator(node.domain, node.op) != nullptr) continue;
    return Unimplemented("operator ", node.op, " (opset ", graph.opset, ", node '", node.name, "') is not supported");
  }
  SWIZZLE_RETURN_IF_ERROR(VerifyAnyShape(graph, options.find_operator));
  return graph;
}

// The file of tensors in a folder.
StatusOr<fs::path> TensorsIn(const fs::path& folder) {
  std::error_code ignored;
  const fs::path single = folder / kSingleFile, index = folder / (std::string("model") + kIndexEnding);
  const bool has_single = fs::exists(single, ignored), has_index = fs::exists(index, ignored);
  if (has_single && has_index) {
    return InvalidArgument(folder.string(), ": there is both ", single.filename().string(), " and ",
                           index.filename().string(), "; keep one");
  }
  if (!has_single && !has_index) {
    return MakeError(StatusCode::kNotFound, folder.string(), ": there is neither ", single.filename().string(), " nor ",
                     index.filename().string(), " in it");
  }
  return has_single ? single : index;
}

}  // namespace

StatusOr<Graph> MakeCheckpointGraph(std::string_view config, TensorMap tensors, const CheckpointOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(const Compression compression, ReadCompression(config));
  SWIZZLE_RETURN_IF_ERROR(CheckConfig(config));
  SWIZZLE_RETURN_IF_ERROR(Decompress(compression.sparsity, options.max_dense_bytes, tensors));
  SWIZZLE_ASSIGN_OR_RETURN(const Encoder encoder, ReadEncoder(config, tensors));
  return MakeGraph(encoder, compression, std::move(tensors), options);
}

bool IsCheckpoint(const fs::path& model) {
  const fs::path ending = model.extension();
  if (ending == ".safetensors" || model.filename().string().ends_with(kIndexEnding)) return true;
  std::error_code ignored;
  return ending != ".onnx" && ending != ".swz" && fs::is_directory(model, ignored);
}

StatusOr<Graph> ReadCheckpoint(const fs::path& model, const CheckpointOptions& options) {
  std::error_code ignored;
  fs::path file = model;
  if (fs::is_directory(model, ignored)) {
    SWIZZLE_ASSIGN_OR_RETURN(file, TensorsIn(model));
  }
  const fs::path config = file.has_parent_path() ? file.parent_path() / "config.json" : "config.json";
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(config, kMaxConfigBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SWIZZLE_RETURN_IF_ERROR(Annotate(CheckConfig(text), config.string()));
  SWIZZLE_ASSIGN_OR_RETURN(TensorMap tensors, ReadTensors(file));
  auto graph = MakeCheckpointGraph(text, std::move(tensors), options);
  if (!graph.ok()) return Annotate(graph.status(), file.string());
  return graph;
}

}  // namespace swizzle
