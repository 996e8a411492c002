// The client library: inference over gRPC with plain values in and out; no protobuf type shows.
//
// A Client holds one connection, or one to each of several servers, made when first needed and made again when lost. It
// is thread-safe, and may be used by any number of threads at once.
//
// Errors carry the server's own code and message. Where no server answered, IsUnreachable() is true of the status, and
// its code is UNAVAILABLE or DEADLINE_EXCEEDED.
#ifndef SWIZZLE_CLIENT_CLIENT_H_
#define SWIZZLE_CLIENT_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/model_statistics.h"
#include "client/tensor.h"

namespace swizzle::client {

// When a failed call is tried again, within its deadline and never beyond it. Tried again are inference, which has no
// effect but its answer, and questions; not LoadModel and UnloadModel, and not streams, whose answers may have come.
struct RetryOptions {
  int max_attempts = 1;  // of a call, the first one included; 1: nothing is tried again
  // Before the second attempt a random time up to this is waited; the bound doubles with each further one.
  absl::Duration initial_backoff = absl::Milliseconds(20);
  absl::Duration max_backoff = absl::Seconds(1);  // where the bound stops growing
  // An attempt without an answer for so long is given up for the next one, but not the last, which has all the time
  // that the call has left. It saves calls from a server that hangs. Zero: each attempt has all that is left.
  absl::Duration attempt_timeout = absl::ZeroDuration();
  // UNAVAILABLE is tried again always. RESOURCE_EXHAUSTED, which an overloaded server answers, only where this is true:
  // it makes the load larger.
  bool resource_exhausted = false;
  // Retries of all calls together may be ahead of a tenth of the successful calls by so many, so that a service that
  // fails for long is not asked several times as often.
  int budget = 500;
};

struct ClientOptions {
  // "host:port"; "unix:/path"; several servers as numbers, "10.0.0.1:8001,10.0.0.2:8001" or "[::1]:8001,[::2]:8001";
  // or a target of gRPC as it is, "dns:///swizzle-headless:8001".
  std::string address = "localhost:8001";
  // Whether calls go in turn to all addresses that a name has, or to the first that answers. Always so with several
  // servers. Those whose health service says that they do not serve (draining ones) get none, and names are looked up
  // again when a connection ends.
  bool round_robin = false;
  absl::Duration min_resolution_interval = absl::Seconds(1);  // between two look-ups of a name
  absl::Duration timeout = absl::Seconds(30);  // of each call that does not name its own, all its attempts together
  RetryOptions retries = {};
  int max_message_bytes = 64 << 20;  // of a response
  // Whether requests for inference are sent compressed. Where a server does not take that, they are sent as they are;
  // only a stream that is open already ends with UNIMPLEMENTED.
  bool gzip = false;
  // A connection that is silent for so long while calls wait is asked for a sign of life, and given up when none comes
  // in time. Zero: never. Servers end connections that ask too often: at Swizzle's, less than 10 s, which is
  // --min-ping-interval; at others perhaps less than 5 minutes.
  absl::Duration keepalive_time = absl::Seconds(20);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  bool tls = false;
  std::string tls_ca = {};                         // PEM: authorities of the server's certificate; empty: the system's
  std::string tls_certificate = {}, tls_key = {};  // PEM: what this client shows; empty: nothing
  std::string tls_server_name = {};  // that certificates have to be for; empty: the address's, of several the first's
  std::string token = {};            // sent with each call, as "authorization: Bearer TOKEN"; empty: none
};

struct ServerMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

// A model of the server's repository.
struct ListedModel {
  std::string name;
  std::string version;  // empty: none is known
  std::string state;    // READY, LOADING, UNAVAILABLE or UNLOADING
  std::string reason;   // why it does not serve
};

struct TensorMetadata {
  std::string name;
  std::string datatype;
  Shape shape;  // -1: any; first the batch dimension, where the model batches
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
  std::map<std::string, std::string> properties;  // what sparsity saved, and the kernels chosen
};

// What a model is served by, all that was derived included.
struct ModelConfig {
  std::string text;  // as config.pbtxt spells it
  std::string json;
};

struct InferRequest {
  std::string model;
  std::string version;  // empty: the latest that is ready
  std::string id;       // echoed
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;               // names; empty: all
  absl::Duration timeout = absl::ZeroDuration();  // zero: ClientOptions::timeout
};

struct InferResult {
  std::string model;
  std::string version;
  std::string id;
  std::vector<Tensor> outputs;
  absl::Duration queue;  // as the server measured them
  absl::Duration compute;
  int attempts = 1;  // that the call took; see RetryOptions
};

// One of a stream's answers. A request of a decoupled model has any number of them, others have one.
struct StreamAnswer {
  std::string id;  // the request's
  // An error is this request's alone, and its only answer or the last. UNKNOWN where the server tells no code.
  absl::StatusOr<InferResult> result;
  // No other answer to the request follows. The last of a decoupled model may have no outputs, and serve only for this.
  bool last = false;
};

// A call that may still be running.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Asks the server to stop; the call's callback runs with CANCELLED unless the call was over already.
  virtual void Cancel() = 0;
};

// What a stream tells of itself, one call after the other, on gRPC's threads; must not block.
struct StreamCallbacks {
  absl::AnyInvocable<void(StreamAnswer)> on_answer;  // in the order of the requests
  // Once, after all answers: OK after HalfClose, else what ended the stream.
  absl::AnyInvocable<void(const absl::Status&) &&> on_end;
};

// Many requests on one call, answered in their order, errors too. Thread-safe. Dropping it cancels what is not over:
// on_end still runs, and the client's destructor waits for that. To be dropped before the client.
class InferStream {
 public:
  virtual ~InferStream() = default;
  // Queues a request. Where 16 wait to be sent, waits until fewer do; never in a callback of the stream.
  // INVALID_ARGUMENT if it is malformed; FAILED_PRECONDITION after HalfClose; UNAVAILABLE once the stream has ended,
  // whose reason on_end gets. The request's timeout does not count.
  virtual absl::Status Send(const InferRequest& request) = 0;
  // No further requests come. The stream ends when all are answered.
  virtual void HalfClose() = 0;
  // Ends the stream; answers that are under way are lost.
  virtual void Cancel() = 0;
};

class Client {
 public:
  using InferCallback = absl::AnyInvocable<void(absl::StatusOr<InferResult>) &&>;

  // Waits for the callbacks of InferAsync and OpenStream; not to be called from one.
  virtual ~Client() = default;

  virtual absl::StatusOr<bool> Live() = 0;
  virtual absl::StatusOr<bool> Ready() = 0;
  // An empty version stands for the latest.
  virtual absl::StatusOr<bool> ModelReady(const std::string& model, const std::string& version = "") = 0;
  // All models, also those that don't serve.
  virtual absl::StatusOr<std::vector<ListedModel>> ListModels() = 0;
  // Where the server takes orders; a server may do so at an address of its own. A model that serves is loaded again if
  // its files have changed, and replaced between two requests. Waits until it serves, but for no longer than `timeout`.
  virtual absl::Status LoadModel(const std::string& model, absl::Duration timeout) = 0;
  // Orders are taken there as well. Requests that the model has are finished meanwhile.
  virtual absl::Status UnloadModel(const std::string& model) = 0;
  virtual absl::StatusOr<ServerMetadata> GetServerMetadata() = 0;
  virtual absl::StatusOr<ModelMetadata> GetModelMetadata(const std::string& model, const std::string& version = "") = 0;
  // Counts all models that serve, in all their versions, or those that are named.
  virtual absl::StatusOr<std::vector<ModelStatistics>> GetStatistics(const std::string& model = "",
                                                                     const std::string& version = "") = 0;
  virtual absl::StatusOr<ModelConfig> GetModelConfig(const std::string& model, const std::string& version = "") = 0;

  // Returns when the server, and `model` where it is not empty, are ready; else, once `timeout` has passed, an error
  // that says what was wrong last.
  virtual absl::Status WaitReady(const std::string& model, absl::Duration timeout) = 0;

  // Blocks until the result is there.
  virtual absl::StatusOr<InferResult> Infer(const InferRequest& request) = 0;

  // Returns at once. `done` runs exactly once and must not block: on another thread, or, for a malformed request,
  // before this returns. Dropping the returned handle does not cancel the call, which the
  // client's destructor waits for.
  virtual std::shared_ptr<PendingCall> InferAsync(const InferRequest& request, InferCallback done) = 0;

  // A stream that may last for `timeout`; zero: for as long as it likes.
  virtual std::unique_ptr<InferStream> OpenStream(StreamCallbacks callbacks,
                                                  absl::Duration timeout = absl::ZeroDuration()) = 0;
};

// Does not wait for the connection; see WaitReady. Where the address can't be used, all calls are INVALID_ARGUMENT.
std::unique_ptr<Client> NewClient(const ClientOptions& options);

// Whether the status says that no server answered, rather than what a server answered.
bool IsUnreachable(const absl::Status& status);

// How many attempts a failed call has taken.
int AttemptsOf(const absl::Status& status);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLIENT_H_
