// Opens a model file of any container as a validated, fused Network.
#ifndef SWIZZLE_MODEL_LOADER_LOAD_LOADER_H_
#define SWIZZLE_MODEL_LOADER_LOAD_LOADER_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model_loader/files/read_file.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/network/network.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

struct LoadedModel {
  Network network;
  std::string container;                             // one of kContainers
  std::vector<std::pair<std::string, int>> fusions;  // pass name -> how often it applied; empty for swz
};

// What a model can come in, as LoadedModel::container names it.
inline constexpr std::array<std::string_view, 3> kContainers = {"onnx", "swz", "safetensors"};

// What loading may read beside the file itself, and what it may take for given.
struct LoadLimits {
  int64_t external_bytes = int64_t{1} << 33;          // of what an ONNX model keeps in external files
  std::map<std::string, DeclaredPort> ports = {};     // as of ReadOptions
  std::shared_ptr<InputDefaults> defaults = nullptr;  // likewise
  GraphRevision revise = nullptr;                     // likewise; a packed network, which is none, stays as it is
};

// Reads *.onnx, *.swz or *.safetensors by its ending, and from its folder what an ONNX model keeps in external files or
// what else belongs to a Hugging Face checkpoint (safetensors/checkpoint.h), which its folder or index may stand for.
// NOT_FOUND, INVALID_ARGUMENT (malformed; names what and where), UNIMPLEMENTED (an operator that is not supported:
// names operator, opset and node).
StatusOr<LoadedModel> LoadModel(const std::filesystem::path& file, const LoadLimits& limits = {});

// A model that the interpreter runs as a whole.
struct ProgramModel {
  std::shared_ptr<const interpreter::Program> program;
  std::string reason;              // why the optimised plan does not take it
  std::string container = "onnx";  // one of kContainers
};

using RunnableModel = std::variant<LoadedModel, ProgramModel>;

// One of kContainers.
inline const std::string& ContainerOf(const RunnableModel& model) {
  return std::visit([](const auto& either) -> const std::string& { return either.container; }, model);
}

// An ONNX model as its readers take it: the bytes of an .onnx file, or of the graph in a packed one.
struct OnnxModel {
  std::vector<std::byte> bytes;                  // none where they are still in `file`
  ReadOptions options = {};                      // with where its external data is
  std::map<std::string, InputZeros> zeros = {};  // of a packed one's values, which the options put into the graph
  std::filesystem::path file = {};               // of an .onnx file

  // Refers to the bytes.
  OnnxSource source() const { return bytes.empty() && !file.empty() ? OnnxSource::OfFile(file) : OnnxSource(bytes); }
};

// Leaves an .onnx file to who parses it. UNIMPLEMENTED for a packed model that is no graph.
StatusOr<OnnxModel> OpenOnnxModel(const std::filesystem::path& file, const LoadLimits& limits = {});
// Reads all bytes of the same files, .onnx ones too.
StatusOr<OnnxModel> ReadOnnxModel(const std::filesystem::path& file, const LoadLimits& limits = {});

// As LoadModel; an ONNX model, a packed graph or a checkpoint that LoadModel refuses as UNIMPLEMENTED runs on the
// interpreter, if that supports all of it. If it does not, the error is LoadModel's, with the executor's where
// that is another.
StatusOr<RunnableModel> LoadRunnableModel(const std::filesystem::path& file, const LoadLimits& limits = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_LOAD_LOADER_H_
