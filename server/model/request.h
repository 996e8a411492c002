// A checked request on its way from the service to an executor, and its result.
#ifndef SWIZZLE_SERVER_MODEL_REQUEST_H_
#define SWIZZLE_SERVER_MODEL_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/status.h"
#include "kernels/base/tensor.h"

namespace swizzle {

class AnswerSink;
struct SampledRequest;  // server/tracing

// What a request takes of memory on its way, beside its own inputs and its answer. Thread-safe.
class RequestBudget {
 public:
  virtual ~RequestBudget() = default;
  // Takes `bytes` more, or gives them back where they are negative. RESOURCE_EXHAUSTED, and nothing is taken, where
  // there is no room for them.
  virtual Status Add(int64_t bytes) = 0;
};

// What a request says of its texts, of models that take any.
struct TextOptions {
  bool truncate = true;                              // what is too long; else it is refused
  std::optional<std::string> prompt = std::nullopt;  // the name of what stands before each; none: the model's default
};

// Move-only. Already validated against the model's specification.
struct Request {
  std::vector<TensorView> inputs;      // in the order of ModelSpec::inputs; nobody writes there any more
  std::shared_ptr<const void> owner;   // keeps those of their bytes alive that the message does not
  std::shared_ptr<const void> staged;  // likewise, of what Model::Stage copied
  int64_t rows = 1;
  int64_t tokens = 0;                    // of all rows, as Model::CheckRequest counts them
  std::vector<int64_t> row_tokens = {};  // of each, where several may run in different batches; else empty
  int64_t text_tokens = 0;               // EncodedInputs's
  TextOptions text_options = {};
  uint64_t batch_class = 0;                      // requests of different ones share no batch (Model::BatchClass)
  uint64_t connection = 0;                       // whatever tells it from others; 0: it came on none
  AnswerSink* answers = nullptr;                 // of a decoupled model; lasts until the request has ended
  RequestBudget* budget = nullptr;               // lasts until the request has ended; null: nobody counts
  Instant deadline = Instant::InfiniteFuture();  // not started by then: DEADLINE_EXCEEDED
  int level = 1;                                 // of priority; 1 is the first to be served
  Instant late_at = Instant::InfiniteFuture();   // not started by then: it goes behind others of its level
  SampledRequest* sample = nullptr;              // is told how the batch went; null: nobody asks
};

struct Result {
  std::vector<std::string> outputs;       // one per ModelSpec::outputs, raw bytes
  std::vector<Shape> shapes;              // same order, batch dimension included
  absl::Duration queue;                   // from Submit to the start of its first batch
  absl::Duration input, compute, output;  // of the batches it ran in, together
  int64_t batch_rows = 0;                 // rows of the last of them
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_REQUEST_H_
