#include "model_loader/safetensors/checkpoint.h"

#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "model_loader/files/read_file.h"
#include "model_loader/graph/verify.h"
#include "model_loader/safetensors/bert_config.h"
#include "model_loader/safetensors/bert_graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/compressed_tensors.h"
#include "model_loader/safetensors/compression_config.h"
#include "model_loader/safetensors/sharded_checkpoint.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr char kSingleFile[] = "model.safetensors";

// What config.json says, read before any tensor: a model of another kind is told so at once.
struct Description {
  BertConfig bert;
  Compression compression;
};

StatusOr<Description> ReadDescription(std::string_view config) {
  Description description;
  SWIZZLE_ASSIGN_OR_RETURN(description.compression, ReadCompression(config));
  SWIZZLE_ASSIGN_OR_RETURN(description.bert, ParseBertConfig(config));
  return description;
}

StatusOr<Graph> MakeGraph(const Description& description, TensorMap tensors, const CheckpointOptions& options) {
  const Compression& compression = description.compression;
  SWIZZLE_RETURN_IF_ERROR(Decompress(compression.sparsity, options.max_dense_bytes, tensors));
  SWIZZLE_ASSIGN_OR_RETURN(CheckpointWeights weights,
                           CheckpointWeights::From(description.bert.family, compression, std::move(tensors)));
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, BuildBertGraph(description.bert, std::move(weights)));
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
  SWIZZLE_ASSIGN_OR_RETURN(const Description description, ReadDescription(config));
  return MakeGraph(description, std::move(tensors), options);
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
  const auto description = ReadDescription({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!description.ok()) return Annotate(description.status(), config.string());
  SWIZZLE_ASSIGN_OR_RETURN(TensorMap tensors, ReadTensors(file));
  auto graph = MakeGraph(*description, std::move(tensors), options);
  if (!graph.ok()) return Annotate(graph.status(), file.string());
  return graph;
}

}  // namespace swizzle
