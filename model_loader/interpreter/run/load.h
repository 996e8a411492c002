// Opens an ONNX file or a checkpoint for the interpreter.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_LOAD_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle::interpreter {

// Which of the file's nodes a program has: all, for who looks values up by the names that the file gives them, or
// without those that change nothing, for who runs it.
enum class Nodes : uint8_t { kNeeded, kAll };

// A model of opset kFirstOpset to kLastOpset whose operators the interpreter runs, with inputs of any type and shape.
// INVALID_ARGUMENT if it is malformed, or beyond the limits among the options, whose others count for nothing;
// UNIMPLEMENTED, naming operator and node, if something is not supported.
StatusOr<std::shared_ptr<const Program>> ReadProgram(const OnnxSource& model, const ReadOptions& options = {},
                                                     Nodes nodes = Nodes::kNeeded);

// Reads such a model from a file, which errors name, or a checkpoint, by any path that safetensors/checkpoint.h knows.
// `revise`, which may be null, sees the graph first.
StatusOr<std::shared_ptr<const Program>> ReadProgram(const std::filesystem::path& file, Nodes nodes = Nodes::kNeeded,
                                                     const GraphRevision& revise = nullptr);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_LOAD_H_
