// What the server needs of a model, whatever it is made of: a specification, facts, and sessions that run batches.
#ifndef SWIZZLE_SERVER_MODEL_MODEL_H_
#define SWIZZLE_SERVER_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/precision.h"
#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "server/threading/clock.h"

namespace swizzle {

struct TextOptions;  // request.h
struct TextRules;    // text_model.h

// What an input is where a request does not give it.
struct InputDefault {
  Shape dims;  // without the batch dimension where max_batch_size > 0
  size_t row_bytes = 0;
  std::vector<std::byte> bytes;  // of max_batch_size rows, so that any batch's are the first of them
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape dims;  // without the batch dimension where max_batch_size > 0; -1: any
  // In requests and responses, where a configuration reshapes the tensor (reshaped_dims.h); else as the model has it.
  std::optional<Shape> reshaped = std::nullopt;
  // Of an output, by index into a row: what its classes are called. Null: they have no names.
  std::shared_ptr<const std::vector<std::string>> labels = nullptr;
  std::shared_ptr<const InputDefault> default_value = nullptr;  // of an input; null: every request gives it

  const Shape& wire_dims() const { return reshaped ? *reshaped : dims; }
};

// Where a configuration wants a model's executors: kAuto takes whatever the server runs models on.
enum class InstanceKind : uint8_t { kAuto, kCpu, kGpu };

// Whether executors of plans on the CPU keep each of their threads to a processor; each model's begin at the first.
// kAuto: where an executor has at least 8, and a model's together all of the affinity mask, with no quota.
enum class PinThreads : uint8_t { kAuto, kOn, kOff };

// What becomes of requests of one priority level while they wait.
struct QueuePolicy {
  int64_t max_requests = 1024;                         // that may wait
  absl::Duration default_timeout = absl::Seconds(10);  // in the queue
  bool allow_timeout_override = true;                  // whether a request may shorten it
  bool delays_late = false;  // what waited so long goes behind others of its level, and does not end for it

  friend bool operator==(const QueuePolicy&, const QueuePolicy&) = default;
};

// Immutable after load.
struct ModelSpec {
  std::string name;
  int64_t version = 1;
  std::string platform;             // "swizzle_onnx", "swizzle_swz", "swizzle_identity"
  std::string backend;              // "swizzle" or "identity"
  int64_t max_batch_size = 0;       // 0: shapes are exactly the model's, requests run alone
  std::string batch_obstacle = {};  // what keeps requests from sharing a batch; empty: a fixed batch dimension, at most
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  int64_t max_batch_tokens = 0;        // of one batch, and of a sequence; 0: the model has no token sequences
  int64_t preferred_batch_tokens = 0;  // what batches are filled to; 0: max_batch_tokens
  Precision precision = Precision::kFloat32;
  bool compute_masked = false;   // of token sequences: also tokens that a mask excludes
  int instance_count = 1;        // executors on each device
  bool instances_given = false;  // by the configuration
  bool pin_threads = false;      // an executor's threads keep to a processor each
  int device_count = 1;
  InstanceKind instance_kind = InstanceKind::kAuto;
  bool dynamic_batching = true;  // false: a batch is one request
  bool decoupled = false;        // requests have any number of answers (AnswerSink)
  std::vector<int64_t> preferred_batch_sizes;
  absl::Duration max_queue_delay = absl::ZeroDuration();
  int64_t max_queue_rows = 1024;                     // see server/batching/admission.h
  int64_t max_queue_bytes = int64_t{256} << 20;      // of inputs
  absl::Duration max_queue_wait = absl::Seconds(5);  // that is expected
  int64_t max_connection_queue_percent = 90;         // of each of these four, for one connection's requests
  QueuePolicy queue_policy = {};                     // of levels that have none of their own
  std::map<int, QueuePolicy> level_policies = {};
  int priority_levels = 1, default_priority = 1;  // 1 is the first to be served
  bool cache_responses = false;
  // Upper edges of a model's own histograms, by the family's name; else the table's.
  std::map<std::string, std::vector<double>, std::less<>> histogram_buckets = {};
  std::string memory_note = {};  // why the largest batch is smaller than was asked for; empty: it is not

  int executors() const { return instance_count * device_count; }
  const QueuePolicy& PolicyOf(int level) const {
    const auto own = level_policies.find(level);
    return own == level_policies.end() ? queue_policy : own->second;
  }
};

// What metadata and metrics say of a model's weights and kernels.
struct ModelFacts {
  std::map<std::string, std::string>
      properties;              // for ModelMetadata: format, sparsity, nnz, dense and stored bytes, kernels
  std::string device = "cpu";  // the metrics' label: "cpu", "cuda:0"; "cuda" for several
  std::vector<std::string> devices = {"cpu"};  // each holds the weights: "cuda:0", "cuda:1"
  double sparsity = 0.0;
  int64_t dense_bytes = 0, stored_bytes = 0, device_bytes = 0;  // of weights; device_bytes on each device
  struct KernelUse {
    std::string op, kernel;
    int layers = 0;
  };
  std::vector<KernelUse> kernels;
  int timed_now = 0, timed_before = 0;  // kernel times: measured for this plan, taken from the tuning cache
  int dense_fallback_layers = 0;        // sparse weights that run on a dense kernel
};

// Takes the answers to one request of a decoupled model, whoever it came from. Thread-compatible.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // One more answer; its outputs and their shapes are as a BatchItem's. Does not block. False once no more are wanted.
  virtual bool Emit(std::vector<std::string> outputs, std::vector<Shape> shapes) = 0;
  // Whether there was an answer: the request cannot be run again.
  virtual bool begun() const = 0;
};

// One request of a batch. inputs[i] follows ModelSpec::inputs[i], its shape checked, batch dimension included.
// The session fills outputs[i] and output_shapes[i] for every ModelSpec::outputs[i]; a decoupled model's gives its
// answers to `answers`, as it has them, before Run returns.
struct BatchItem {
  std::span<const TensorView> inputs;
  int64_t rows = 1;                             // the batch dimension; 1 where max_batch_size is 0
  std::vector<std::string>* outputs = nullptr;  // raw bytes, little-endian
  std::vector<Shape>* output_shapes = nullptr;
  AnswerSink* answers = nullptr;
};

// How long the parts of one batch took.
struct BatchTimes {
  absl::Duration input;  // gathering requests
  absl::Duration compute;
  absl::Duration output;        // scattering results
  bool first_of_shape = false;  // no batch of such shapes came to this session before: others will take less
};

// Runs batches, one at a time; owned by one executor, of which only one thread acts at a time.
class Session {
 public:
  virtual ~Session() = default;
  // All items together have at most max_batch_size rows (one item where that is 0). An error fails the whole batch.
  virtual Status Run(std::span<BatchItem> batch, BatchTimes& times) = 0;
  // Whether any thread may run a batch of this class (Model::BatchClass), and waits for nothing meanwhile, as far as
  // can be seen now. Thread-safe.
  virtual bool RunsAtOnce(uint64_t) const { return false; }
};

// What Model::Encode has made of a request.
struct EncodedInputs {
  std::shared_ptr<const void> owner = nullptr;  // keeps the new inputs alive; null: they stay as they are
  int64_t text_tokens = 0;                      // of all its texts, special ones included; 0: it has none
};

// Thread-safe; outlives its sessions. What it computes doesn't change; how it does may, and then its facts.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSpec& spec() const = 0;
  virtual std::shared_ptr<const ModelFacts> facts() const = 0;
  // How it reads texts, which lasts as long as the model; null: it takes none.
  virtual const TextRules* text_rules() const { return nullptr; }
  // Puts what the model computes with in the place of what requests bring, where these are not the same, as tokens are
  // for texts; the calls below and sessions then see that. INVALID_ARGUMENT, naming the input, where there is no such
  // thing, OUT_OF_RANGE for a text that is too long and not to be truncated. Shapes were checked against the
  // specification.
  virtual StatusOr<EncodedInputs> Encode(std::vector<TensorView>&, const TextOptions&) const { return EncodedInputs(); }
  // Looks at the values of a request, whose shapes were checked against the specification. Returns the tokens that it
  // takes of a batch's max_batch_tokens: of each row, where its rows may run in different batches, so that all together
  // may be more than one takes; else one number; nothing where there are none. INVALID_ARGUMENT if the model cannot run
  // it.
  virtual StatusOr<std::vector<int64_t>> CheckRequest(std::span<const TensorView>) const {
    return std::vector<int64_t>();
  }
  // Requests of different classes share no batch. Shapes were checked against the specification.
  virtual uint64_t BatchClass(std::span<const TensorView>) const { return 0; }
  // Copies inputs to where sessions read them with less effort, and lets the views show the copies; returns what keeps
  // these alive. Null if nothing was copied.
  virtual std::shared_ptr<const void> Stage(std::span<TensorView>) const { return nullptr; }
  // The session times its batches by `clock`, which outlives it.
  virtual StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_MODEL_H_
