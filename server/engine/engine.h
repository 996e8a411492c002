// The engine in one's own process: opens a model file, runs it, and says how it runs.
//
//   const auto model = swizzle::engine::Model::Open("model.onnx");
//   const std::array<int64_t, 4> shape = {1, 3, 224, 224};
//   const auto outputs = (*model)->Run({{"x", "FP32", shape, std::as_bytes(std::span(pixels))}});
//
// It computes what the server computes, by the same kernels, choices and checks. Nothing throws: what is wrong with a
// file, an option or an input is a Status with one message, which names it, and what was expected. Nothing is printed.
//
// Threads: a Model is thread-safe; free functions are.
// Forks: a child may run a model on the CPU that its parent opened, with threads of its own and the parent's weights,
// as far as nobody writes them; it tunes no more. FAILED_PRECONDITION where it was being run, opened or tuned during
// the fork, or runs on a GPU: the child then opens it itself. What was opened before a fork is never torn down in a
// child, whose parent goes on with it.
#ifndef SWIZZLE_SERVER_ENGINE_ENGINE_H_
#define SWIZZLE_SERVER_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace swizzle::engine {

// "0.1.0"
std::string Version();

struct Options {
  std::string device = "cpu";      // "cpu", "cuda", "cuda:1", or "auto": a GPU where there is one; of several the first
  int threads = 0;                 // for all runs at a time together; 0: all that the process may use
  std::string precision = "FP32";  // or "BF16"; on GPUs "FP16X3", "TF32", "FP16" or "INT8", too; in any case
  int64_t max_batch = 64;          // rows computed together; what has more is run in parts
  // The model takes texts, by the tokeniser in its folder, and gives a vector of each ("embedding"), that and one of
  // each of its tokens ("token_embedding"), or the scores of labels of each or of each pair ("classification";
  // SERVING.md, Texts).
  std::string text = "";
  int concurrency = 1;  // runs at a time, each with its share of the threads; others wait for their turn

  // Kernels are chosen by estimates, and by times that the cache has. What is missing is measured, for so long at most:
  // before Open returns, or else on a thread of low priority while nothing runs, and better plans take over as they
  // are found.
  absl::Duration tuning_budget = absl::ZeroDuration();
  bool tune_now = false;
  std::filesystem::path tuning_cache = {};  // shared by processes, and with the server; empty: none is kept
};

// Datatypes are the Open Inference Protocol's: "BOOL", "UINT8", "INT64", "FP16", "FP32", "BF16", "BYTES" and so on.
struct TensorInfo {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;  // -1: any
  bool optional = false;       // an input that has a default
};

// An input in the caller's memory, which it leaves alone until Run returns: elements one after the other,
// little-endian, the last dimension's neighbours; no alignment is asked for. Of BYTES each element is a length, as 4
// bytes, and so many bytes.
struct InputView {
  std::string_view name;
  std::string_view datatype;
  std::span<const int64_t> shape;
  std::span<const std::byte> data;
};

// Its bytes are as InputView's, aligned as operator new aligns.
struct Output {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  std::string data;
};

// What a run says of its texts, of models that take any.
struct TextOptions {
  bool truncate = true;                              // what is too long; else it is OUT_OF_RANGE
  std::optional<std::string> prompt = std::nullopt;  // the name of what stands before each; none: the model's default
};

enum class Format { kText, kJson, kHtml };

class Model {
 public:
  // Opens *.onnx, *.swz, *.safetensors or the folder of a Hugging Face checkpoint, and nothing but files in its folder.
  // NOT_FOUND; INVALID_ARGUMENT, where the file or an option is wrong; UNIMPLEMENTED, where it has an operator, or asks
  // for a device or a precision, that is not there; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Model>> Open(const std::filesystem::path& file, const Options& options = {});

  // Runs that wait for their turn end with CANCELLED; returns once those that compute have ended. No call may begin
  // any more.
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // What the model is called in messages: its file's name without the ending.
  virtual const std::string& name() const = 0;
  // In the model's order.
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;
  // Largest first dimension that is computed at once; what is larger runs in parts. 0: the model has no rows that are
  // independent of each other, and shapes are taken as they are.
  virtual int64_t max_batch() const = 0;
  // How it runs now: "swizzle_format", "swizzle_sparsity", "swizzle_kernels" and so on, as the server's metadata. Empty
  // where it does not run, after a fork.
  virtual std::map<std::string, std::string> properties() const = 0;

  // Runs the model on inputs in any order; those that are optional may be left out. Returns the outputs of these names,
  // in that order, or all of them. An input of more than max_batch() rows, or of more tokens than a batch takes, is run
  // in parts, which no result shows.
  // INVALID_ARGUMENT: an input that the model has not, that is missing, there twice, or of another datatype, shape or
  // size than expected, or whose values the model cannot take. RESOURCE_EXHAUSTED: results would need too much memory.
  virtual absl::StatusOr<std::vector<Output>> Run(std::span<const InputView> inputs,
                                                  std::span<const std::string> outputs = {},
                                                  const TextOptions& texts = {}) = 0;
  absl::StatusOr<std::vector<Output>> Run(std::initializer_list<InputView> inputs) {
    return Run(std::span(inputs.begin(), inputs.size()));
  }

  // What `swizzle-pack inspect` prints of the model, by the kernel times that are known: layers, weights, kernels, and
  // the times of what was not chosen. Reads the file again.
  virtual absl::StatusOr<std::string> Inspect(Format format) const = 0;

  // Whether nothing is left to be measured, or nothing is measured at all.
  virtual bool tuned() const = 0;

 protected:
  Model() = default;
};

// Where libswizzle_cuda.so is, if it is neither beside this library nor installed with it. To be called before a GPU is
// first opened; SWIZZLE_CUDA_MODULE in the environment comes first.
void UseCudaModule(const std::filesystem::path& file);

// The commands of swizzle-pack, whose page says what each option does. All return the text that the command prints.
// They write `output`, whose old content stays where one fails, and take long: other threads may run models meanwhile.

// Told of what is done next, a line each, on the thread that called; false ends the work, with CANCELLED. Null: nobody
// is.
using Progress = std::function<bool(std::string_view line)>;

struct PruneOptions {
  std::filesystem::path model = {};
  std::filesystem::path output = {};
  double sparsity = 0.0;
  std::string method = "magnitude";        // "n-m", "vector-wise", "shfl-bw", "block"
  std::string pattern = "2:4";             // of "n-m"
  int64_t vector_rows = 64;                // of vectors; of blocks rows and columns
  std::filesystem::path scores = {};       // empty: magnitudes
  std::filesystem::path calibration = {};  // .npz, or a folder of .npy files; empty: weights that stay are as they were
  std::vector<std::string> skip = {};      // patterns of layers' or weights' names
  Progress progress = nullptr;
};
absl::StatusOr<std::string> Prune(const PruneOptions& options);

struct QuantizeOptions {
  std::filesystem::path model = {};
  std::filesystem::path output = {};
  std::filesystem::path calibration = {};  // .npz, or a folder of .npy files
  std::string observer = "minmax";         // "percentile", "mse"
  std::vector<std::string> skip = {};      // patterns of layers' names
  int threads = 0;
  Progress progress = nullptr;
};
absl::StatusOr<std::string> Quantize(const QuantizeOptions& options);

struct PackOptions {
  std::filesystem::path model = {};
  std::filesystem::path output = {};
  std::string format = "auto";             // of sparse weights
  std::filesystem::path calibration = {};  // .npz, or a folder of .npy files: zeros of inputs are kept; empty: none are
  int threads = 0;
  Progress progress = nullptr;
};
absl::StatusOr<std::string> Pack(const PackOptions& options);

}  // namespace swizzle::engine

#endif  // SWIZZLE_SERVER_ENGINE_ENGINE_H_
