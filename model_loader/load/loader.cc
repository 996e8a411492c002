#include "model_loader/load/loader.h"

#include <utility>

#include "model_loader/graph/value_zeros.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/network/shared_weights.h"
#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/packed/packed_reader.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle {
namespace {

// Above what any device of today holds; a bound so that a wrong file is refused rather than read.
constexpr int64_t kMaxPackedBytes = int64_t{1} << 36;

StatusOr<LoadedModel> LoadOnnx(const OnnxSource& source, const ReadOptions& options, const std::string& container) {
  LoadedModel model;
  model.container = container;
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(source, options));
  SWIZZLE_ASSIGN_OR_RETURN(model.fusions, RunPasses(graph));
  SWIZZLE_ASSIGN_OR_RETURN(model.network, Lower(std::move(graph)));
  return model;
}

ReadOptions Within(const LoadLimits& limits, ReadOptions options) {
  options.max_external_bytes = limits.external_bytes;
  options.ports = limits.ports;
  options.defaults = limits.defaults;
  options.revise = limits.revise;
  return options;
}

OnnxModel OnnxOf(PackedGraph graph, const LoadLimits& limits) {
  OnnxModel onnx{std::move(graph.model), Within(limits, {}), std::move(graph.zeros)};
  if (!onnx.zeros.empty()) {
    onnx.options.revise = [zeros = onnx.zeros, then = limits.revise](Graph& read) {
      NoteZeros(zeros, read);
      return then ? then(read) : Status();
    };
  }
  onnx.options.external_elements = [tensors = std::make_shared<const PackedGraph>(std::move(graph))](
                                       const std::string& location, int64_t bytes) {
    return tensors->ElementsAt(location, bytes);
  };
  return onnx;
}

bool IsPacked(const std::filesystem::path& file) { return file.extension() == ".swz"; }

StatusOr<PackedModel> ReadPackedFile(const std::filesystem::path& file) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(file, kMaxPackedBytes));
  StatusOr<PackedModel> model = ReadPackedModel(bytes);
  if (auto* const network = model.ok() ? std::get_if<Network>(&*model) : nullptr) {
    ShareWeights(*network);  // files before version 6 have them once for each layer
  }
  if (!model.ok()) return Annotate(model.status(), file.string());
  return model;
}

StatusOr<LoadedModel> LoadPacked(const std::filesystem::path& file, const LoadLimits& limits) {
  SWIZZLE_ASSIGN_OR_RETURN(PackedModel packed, ReadPackedFile(file));
  if (auto* const network = std::get_if<Network>(&packed)) return LoadedModel{std::move(*network), "swz", {}};
  const OnnxModel onnx = OnnxOf(std::move(std::get<PackedGraph>(packed)), limits);
  auto model = LoadOnnx(onnx.bytes, onnx.options, "swz");
  if (!model.ok()) return Annotate(model.status(), file.string());
  return model;
}

StatusOr<LoadedModel> LoadCheckpoint(const std::filesystem::path& path, const LoadLimits& limits) {
  LoadedModel model;
  model.container = "safetensors";
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadCheckpoint(path, {.revise = limits.revise}));
  graph.sequences.emplace();
  SWIZZLE_ASSIGN_OR_RETURN(model.fusions, RunPasses(graph));
  SWIZZLE_ASSIGN_OR_RETURN(model.network, Lower(std::move(graph)));
  return model;
}

// source: the file, for whoever reads it again.
StatusOr<LoadedModel> LoadModel(const std::filesystem::path& file, const OnnxSource& source, const LoadLimits& limits) {
  if (IsCheckpoint(file)) return LoadCheckpoint(file, limits);
  if (IsPacked(file)) return LoadPacked(file, limits);
  if (file.extension() != ".onnx") {
    return InvalidArgument(file.string(), ": its ending is not that of a model; known are .onnx, .safetensors, .swz");
  }
  auto model = LoadOnnx(source, Within(limits, ReadOptionsFor(file)), "onnx");
  if (!model.ok()) return Annotate(model.status(), file.string());
  return model;
}

}  // namespace

StatusOr<LoadedModel> LoadModel(const std::filesystem::path& file, const LoadLimits& limits) {
  return LoadModel(file, OnnxSource::OfFile(file), limits);
}

StatusOr<OnnxModel> OpenOnnxModel(const std::filesystem::path& file, const LoadLimits& limits) {
  if (IsPacked(file)) {
    SWIZZLE_ASSIGN_OR_RETURN(PackedModel packed, ReadPackedFile(file));
    if (auto* const graph = std::get_if<PackedGraph>(&packed)) return OnnxOf(std::move(*graph), limits);
    return Unimplemented(file.string(), ": it was packed as one plan, which is no ONNX model any more");
  }
  return OnnxModel{.bytes = {}, .options = Within(limits, ReadOptionsFor(file)), .file = file};
}

StatusOr<OnnxModel> ReadOnnxModel(const std::filesystem::path& file, const LoadLimits& limits) {
  SWIZZLE_ASSIGN_OR_RETURN(OnnxModel onnx, OpenOnnxModel(file, limits));
  if (!onnx.file.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(onnx.bytes, ReadFile(file, onnx.options.max_model_bytes));
  }
  return onnx;
}

namespace {

// Of a model that no plan takes.
StatusOr<std::shared_ptr<const interpreter::Program>> ReadProgram(const std::filesystem::path& file,
                                                                  const OnnxSource& source,
                                                                  const ReadOptions& options) {
  auto program = interpreter::ReadProgram(source, options);
  if (!program.ok()) return Annotate(program.status(), file.string());
  return program;
}

// The program, because of what LoadModel said, or why there is none either.
StatusOr<RunnableModel> InsteadOf(const Status& planned, const std::filesystem::path& file, const char* container,
                                  const StatusOr<std::shared_ptr<const interpreter::Program>>& program) {
  std::string reason(planned.message());
  if (program.ok()) {
    // Without the path, which is that of a file in `file` where that is a folder.
    const size_t end = reason.find(": ", file.string().size());
    if (reason.starts_with(file.string()) && end != std::string::npos) reason.erase(0, end + 2);
    return RunnableModel(ProgramModel{*program, std::move(reason), container});
  }
  const std::string refusal(program.status().message());
  if (refusal == reason) return planned;
  return MakeError(program.status().code(), refusal, " (and the optimised plan refuses it: ", reason, ")");
}

// The file is read and parsed once; its tensors are expanded for each of the two that may run it.
StatusOr<RunnableModel> LoadRunnablePacked(const std::filesystem::path& file, const LoadLimits& limits) {
  SWIZZLE_ASSIGN_OR_RETURN(PackedModel packed, ReadPackedFile(file));
  if (auto* const network = std::get_if<Network>(&packed)) {
    return RunnableModel(LoadedModel{std::move(*network), "swz", {}});
  }
  const OnnxModel onnx = OnnxOf(std::move(std::get<PackedGraph>(packed)), limits);
  const OnnxSource source(onnx.bytes);
  auto planned = LoadOnnx(source, onnx.options, "swz");
  if (planned.ok()) return RunnableModel(*std::move(planned));
  const Status refused = Annotate(planned.status(), file.string());
  if (refused.code() != StatusCode::kUnimplemented) return refused;
  return InsteadOf(refused, file, "swz", ReadProgram(file, source, onnx.options));
}

}  // namespace

StatusOr<RunnableModel> LoadRunnableModel(const std::filesystem::path& file, const LoadLimits& limits) {
  if (IsPacked(file)) return LoadRunnablePacked(file, limits);
  const OnnxSource source = OnnxSource::OfFile(file);
  StatusOr<LoadedModel> planned = LoadModel(file, source, limits);
  if (planned.ok()) return RunnableModel(*std::move(planned));
  const bool known = IsCheckpoint(file) || file.extension() == ".onnx";
  if (planned.status().code() != StatusCode::kUnimplemented || !known) return planned.status();
  if (IsCheckpoint(file))
    return InsteadOf(planned.status(), file, "safetensors",
                     interpreter::ReadProgram(file, interpreter::Nodes::kNeeded, limits.revise));
  return InsteadOf(planned.status(), file, "onnx", ReadProgram(file, source, Within(limits, ReadOptionsFor(file))));
}

}  // namespace swizzle
