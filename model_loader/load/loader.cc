#include "model_loader/load/loader.h"

#include <utility>

#include "model_loader/fallback/load.h"
#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/packed/packed_reader.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle {
namespace {

// Above what any device of today holds; a bound so that a wrong file is refused rather than read.
constexpr int64_t kMaxPackedBytes = int64_t{1} << 36;

// Frees `bytes` once they are parsed: they need as much memory as the weights.
StatusOr<LoadedModel> LoadOnnx(std::vector<std::byte> bytes, const ReadOptions& options) {
  LoadedModel model;
  model.container = "onnx";
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(bytes, options));
  bytes = {};
  SWIZZLE_ASSIGN_OR_RETURN(model.fusions, RunPasses(graph));
  SWIZZLE_ASSIGN_OR_RETURN(model.network, Lower(std::move(graph)));
  return model;
}

StatusOr<LoadedModel> LoadPacked(std::vector<std::byte> bytes) {
  LoadedModel model;
  model.container = "swz";
  SWIZZLE_ASSIGN_OR_RETURN(model.network, ReadPacked(bytes));
  return model;
}

StatusOr<LoadedModel> LoadCheckpoint(const std::filesystem::path& path) {
  LoadedModel model;
  model.container = "safetensors";
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadCheckpoint(path));
  graph.sequences.emplace();
  SWIZZLE_ASSIGN_OR_RETURN(model.fusions, RunPasses(graph));
  SWIZZLE_ASSIGN_OR_RETURN(model.network, Lower(std::move(graph)));
  return model;
}

}  // namespace

StatusOr<LoadedModel> LoadModel(const std::filesystem::path& file, const LoadLimits& limits) {
  if (IsCheckpoint(file)) return LoadCheckpoint(file);
  const bool packed = file.extension() == ".swz";
  if (!packed && file.extension() != ".onnx") {
    return InvalidArgument(file.string(), ": its ending is not that of a model; known are .onnx, .safetensors, .swz");
  }
  ReadOptions options = ReadOptionsFor(file);
  options.max_external_bytes = limits.external_bytes;
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                           ReadFile(file, packed ? kMaxPackedBytes : options.max_model_bytes));
  auto model = packed ? LoadPacked(std::move(bytes)) : LoadOnnx(std::move(bytes), options);
  if (!model.ok()) return Annotate(model.status(), file.string());
  return model;
}

StatusOr<RunnableModel> LoadRunnableModel(const std::filesystem::path& file, const LoadLimits& limits) {
  StatusOr<LoadedModel> planned = LoadModel(file, limits);
  if (planned.ok()) return RunnableModel(*std::move(planned));
  const bool checkpoint = IsCheckpoint(file);
  if (planned.status().code() != StatusCode::kUnimplemented || !(checkpoint || file.extension() == ".onnx")) {
    return planned.status();
  }
  StatusOr<std::shared_ptr<const fallback::Program>> program = fallback::ReadProgram(file, limits.external_bytes);
  std::string reason(planned.status().message());
  if (program.ok()) {
    // Without the path, which is that of a file in `file` where that is a folder.
    const size_t end = reason.find(": ", file.string().size());
    if (reason.starts_with(file.string()) && end != std::string::npos) reason.erase(0, end + 2);
    return RunnableModel(FallbackModel{*std::move(program), std::move(reason), checkpoint ? "safetensors" : "onnx"});
  }
  const std::string refusal(program.status().message());
  if (refusal == reason) return planned.status();
  return MakeError(program.status().code(), refusal, " (and the optimised plan refuses it: ", reason, ")");
}

}  // namespace swizzle
