// The client library: inference over gRPC with plain values in and out; no protobuf type shows.
//
// A Client holds one connection, made when first needed and made again when lost. It is thread-safe, and may be used by
// any number of threads at once.
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

struct ClientOptions {
  std::string address = "localhost:8001";
  absl::Duration timeout = absl::Seconds(30);  // of each call that does not name its own
  int max_message_bytes = 64 << 20;            // of a response
  bool tls = false;
  std::string tls_ca = {};                         // PEM: authorities of the server's certificate; empty: the system's
  std::string tls_certificate = {}, tls_key = {};  // PEM: what this client shows; empty: nothing
  std::string token = {};                          // sent with each call, as "authorization: Bearer TOKEN"; empty: none
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
};

// A call that may still be running.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // Asks the server to stop; the call's callback runs with CANCELLED unless the call was over already.
  virtual void Cancel() = 0;
};

class Client {
 public:
  using InferCallback = absl::AnyInvocable<void(absl::StatusOr<InferResult>) &&>;

  // Waits for the callbacks of InferAsync; not to be called from one.
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
  // Of all models that serve, in all their versions, or of those that are named.
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
};

// Does not wait for the connection; see WaitReady.
std::unique_ptr<Client> NewClient(const ClientOptions& options);

// Whether the status says that no server answered, rather than what a server answered.
bool IsUnreachable(const absl::Status& status);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLIENT_H_
