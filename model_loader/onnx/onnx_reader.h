// Reads an ONNX model into a Graph, trusting nothing in the file.
//
// Accepted for the optimised plan: opsets 6 to 26 of the default domain, the operators of graph/operator_table.h, FP32
// inputs whose dimension 0 is the batch (free or fixed) and whose other dimensions are fixed; tensors as raw or typed
// data inside the file, or as external data in files below the model's folder; sparse initializers. These become dense,
// with zeros, as the graph is read: the format of each weight is chosen later, by its zeros. ReadOptions can ask for
// another set of operators and opsets, and for inputs of any type and shape.
//
// A model with an input that is a matrix of whole numbers is one of token sequences: it has the operators of
// graph/operator_table.h, all its inputs are [batch, length], either of them free or fixed, and Graph::sequences is
// set.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/files/contained_file.h"
#include "model_loader/graph/graph.h"
#include "model_loader/graph/operator_table.h"

namespace swizzle {

// What is said of an input or output; free dimensions are -1. Nothing: it isn't said.
struct DeclaredPort {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  bool is_optional = false;  // an input that a run need not be given: its initializer is its default
};

// Initializers of inputs that are optional, by name.
using InputDefaults = std::map<std::string, Tensor>;

inline constexpr int64_t kMinOpset = 6;
inline constexpr int64_t kMaxOpset = 26;

struct ReadOptions {
  int64_t max_model_bytes = (int64_t{1} << 31) - 1;   // the most a protobuf message can have
  int64_t max_tensor_bytes = int64_t{1} << 30;        // one initializer or constant
  int64_t max_external_bytes = int64_t{1} << 33;      // all external data together
  int64_t max_sparse_bytes = (int64_t{1} << 31) - 1;  // all sparse initializers together, once dense
  int max_nodes = 1 << 16;
  int max_outputs = 1 << 10;
  ModelFolder external_folder = {};  // the model's own; without a path: external data is refused
  // In place of files: the bytes of a tensor's elements, by its location. Null: there are files.
  std::function<StatusOr<std::vector<std::byte>>(const std::string& location, int64_t bytes)> external_elements;
  // By name, what is known of inputs and outputs besides: it counts where the file gives no type or no shape.
  std::map<std::string, DeclaredPort> ports;
  // Gets the initializers of ports that are optional, which then are inputs as others. Null: all initializers are
  // constants.
  std::shared_ptr<InputDefaults> defaults = nullptr;
  int64_t min_opset = kMinOpset;
  int64_t max_opset = kMaxOpset;
  OperatorFinder find_operator = FindOperator;
  bool attributes_of_any_opset = false;
  bool any_inputs = false;  // of any type and shape, or none at all
  GraphRevision revise;     // of the graph as it was read; null: it stays as it is
};

// For the model in `file`, whose external data lies below the same folder.
ReadOptions ReadOptionsFor(const std::filesystem::path& file);

// Where a model is: in bytes that somebody holds, or in a file, which is parsed as it is read and never held beside
// what is parsed of it. A reading that finds an operator it doesn't take leaves what was parsed to the next one. Refers
// to the bytes. Copies share what is parsed; single-owner.
class OnnxSource {
 public:
  // NOLINTBEGIN(google-explicit-constructor): bytes alone are a source
  OnnxSource(std::span<const std::byte> bytes);
  OnnxSource(const std::vector<std::byte>& bytes) : OnnxSource(std::span(bytes)) {}
  // NOLINTEND(google-explicit-constructor)
  static OnnxSource OfFile(std::filesystem::path file) {
    OnnxSource source{std::span<const std::byte>()};
    source.file_ = std::move(file);
    return source;
  }

  const std::optional<std::filesystem::path>& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // For readers.
  struct Parsed;
  Parsed& parsed() const { return *parsed_; }

 private:
  std::span<const std::byte> bytes_;
  std::optional<std::filesystem::path> file_;
  std::shared_ptr<Parsed> parsed_;
};

// The graph as the file has it, verified (graph/verify.h); initializers are constants. INVALID_ARGUMENT if the file is
// malformed or beyond a limit, UNIMPLEMENTED if it is well formed but uses what is not supported, NOT_FOUND and the
// like for files of external data; all name where. Of the model's own file they say what is wrong, not its name.
StatusOr<Graph> ReadOnnx(const OnnxSource& model, const ReadOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_
