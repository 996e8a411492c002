#include "client/client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/wire_format.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_service.grpc.pb.h"

namespace swizzle::client {
namespace {

constexpr char kUnreachable[] = "swizzle.dev/unreachable";
constexpr absl::Duration kReadyPollInterval = absl::Milliseconds(50);

// By the monotonic clock, which setting the time doesn't move.
gpr_timespec DeadlineIn(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

// One call by gRPC's callback interface, alive until its callback has run and its handle is dropped.
class AsyncInfer : public PendingCall {
 public:
  explicit AsyncInfer(Client::InferCallback done) : done_(std::move(done)) {}

  void Cancel() override { context_.TryCancel(); }

  grpc::ClientContext context_;  // holds the channel
  inference::ModelInferRequest request_;
  inference::ModelInferResponse response_;
  Client::InferCallback done_;
};

// Counts the calls whose callbacks gRPC has yet to let go of.
class CallCount {
 public:
  void Add() {
    const std::lock_guard lock(mutex_);
    ++calls_;
  }
  void Remove() {
    const std::lock_guard lock(mutex_);
    if (--calls_ == 0) none_.notify_all();
  }
  void WaitForNone() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return calls_ == 0; });
  }

 private:
  std::mutex mutex_;  // not Abseil's: ThreadSanitizer would not see it
  std::condition_variable none_;
  int calls_ = 0;
};

class GrpcClient : public Client {
 public:
  explicit GrpcClient(const ClientOptions& options)
      : options_(options), channel_(NewChannel(options)), stub_(inference::GRPCInferenceService::NewStub(channel_)) {}

  // The last owner of a channel joins gRPC's callback threads, so it may not be a call on one of them.
  ~GrpcClient() override { calls_.WaitForNone(); }

  absl::StatusOr<bool> Live() override {
    const auto response = Call(&Stub::ServerLive, inference::ServerLiveRequest());
    if (!response.ok()) return response.status();
    return response->live();
  }

  absl::StatusOr<bool> Ready() override { return ReadyWithin(options_.timeout); }

  absl::StatusOr<bool> ModelReady(const std::string& model, const std::string& version) override {
    return ModelReadyWithin(model, version, options_.timeout);
  }

  absl::StatusOr<std::vector<ListedModel>> ListModels() override {
    const auto response = Call(&Stub::RepositoryIndex, inference::RepositoryIndexRequest());
    if (!response.ok()) return response.status();
    return FromWire(*response);
  }

  absl::Status LoadModel(const std::string& model, absl::Duration timeout) override {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name(model);
    return Call(&Stub::RepositoryModelLoad, request, timeout).status();
  }

  absl::Status UnloadModel(const std::string& model) override {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    return Call(&Stub::RepositoryModelUnload, request).status();
  }

  absl::StatusOr<ServerMetadata> GetServerMetadata() override {
    const auto response = Call(&Stub::ServerMetadata, inference::ServerMetadataRequest());
    if (!response.ok()) return response.status();
    return FromWire(*response);
  }

  absl::StatusOr<ModelMetadata> GetModelMetadata(const std::string& model, const std::string& version) override {
    inference::ModelMetadataRequest request;
    request.set_name(model);
    request.set_version(version);
    const auto response = Call(&Stub::ModelMetadata, request);
    if (!response.ok()) return response.status();
    return FromWire(*response);
  }

  absl::StatusOr<std::vector<ModelStatistics>> GetStatistics(const std::string& model,
                                                             const std::string& version) override {
    inference::ModelStatisticsRequest request;
    request.set_name(model);
    request.set_version(version);
    const auto response = Call(&Stub::ModelStatistics, request);
    if (!response.ok()) return response.status();
    return FromWire(*response);
  }

  absl::StatusOr<ModelConfig> GetModelConfig(const std::string& model, const std::string& version) override {
    inference::ModelConfigRequest request;
    request.set_name(model);
    request.set_version(version);
    const auto response = Call(&Stub::ModelConfig, request);
    if (!response.ok()) return response.status();
    return FromWire(*response);
  }

  absl::Status WaitReady(const std::string& model, absl::Duration timeout) override {
    const auto start = std::chrono::steady_clock::now();
    const auto left_now = [&] { return timeout - absl::FromChrono(std::chrono::steady_clock::now() - start); };
    for (;;) {
      // A call that outlasts the deadline by a little gives a first try even where the timeout is zero.
      const absl::Duration left = std::max(left_now(), kReadyPollInterval);
      const absl::StatusOr<bool> ready = model.empty() ? ReadyWithin(left) : ModelReadyWithin(model, "", left);
      if (ready.ok() && *ready) return absl::OkStatus();
      if (left_now() <= absl::ZeroDuration()) {
        if (!ready.ok()) return ready.status();
        return absl::DeadlineExceededError(
            absl::StrCat(model.empty() ? "the server" : absl::StrCat("model '", model, "'"), " is not ready after ",
                         absl::FormatDuration(timeout)));
      }
      absl::SleepFor(kReadyPollInterval);
    }
  }

  absl::StatusOr<InferResult> Infer(const InferRequest& request) override {
    inference::ModelInferRequest wire;
    if (const absl::Status status = ToWire(request, wire); !status.ok()) return status;
    auto response = Call(&Stub::ModelInfer, wire, TimeoutOf(request));
    if (!response.ok()) return response.status();
    return FromWire(*std::move(response));
  }

  std::shared_ptr<PendingCall> InferAsync(const InferRequest& request, InferCallback done) override {
    auto call = std::make_shared<AsyncInfer>(std::move(done));
    if (const absl::Status status = ToWire(request, call->request_); !status.ok()) {
      std::move(call->done_)(status);
      return call;
    }
    Prepare(call->context_, TimeoutOf(request));
    calls_.Add();
    stub_->async()->ModelInfer(&call->context_, &call->request_, &call->response_,
                               [this, call](const grpc::Status& status) mutable {
                                 Finish(*call, status);
                                 call.reset();
                                 calls_.Remove();
                               });
    return call;
  }

 private:
  using Stub = inference::GRPCInferenceService::Stub;

  void Finish(AsyncInfer& call, const grpc::Status& status) const {
    if (status.ok()) {
      std::move(call.done_)(FromWire(std::move(call.response_)));
    } else {
      std::move(call.done_)(StatusOf(status));
    }
  }

  static std::shared_ptr<grpc::Channel> NewChannel(const ClientOptions& options) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
    // Channels to one address otherwise share one connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // A server that is just starting is found soon after it listens.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    return grpc::CreateCustomChannel(options.address, NewCredentials(options), arguments);
  }

  static std::shared_ptr<grpc::ChannelCredentials> NewCredentials(const ClientOptions& options) {
    if (!options.tls) return grpc::InsecureChannelCredentials();
    return grpc::SslCredentials({options.tls_ca, options.tls_key, options.tls_certificate});
  }

  void Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
    context.set_deadline(DeadlineIn(timeout));
    if (!options_.token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration timeout) {
    grpc::ClientContext context;
    Prepare(context, timeout);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return StatusOf(status);
    return response;
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    return Call(method, request, options_.timeout);
  }

  absl::StatusOr<bool> ReadyWithin(absl::Duration timeout) {
    const auto response = Call(&Stub::ServerReady, inference::ServerReadyRequest(), timeout);
    if (!response.ok()) return response.status();
    return response->ready();
  }

  absl::StatusOr<bool> ModelReadyWithin(const std::string& model, const std::string& version, absl::Duration timeout) {
    inference::ModelReadyRequest request;
    request.set_name(model);
    request.set_version(version);
    const auto response = Call(&Stub::ModelReady, request, timeout);
    if (!response.ok()) return response.status();
    return response->ready();
  }

  absl::Duration TimeoutOf(const InferRequest& request) const {
    return request.timeout > absl::ZeroDuration() ? request.timeout : options_.timeout;
  }

  // The server answered if the connection still stands.
  absl::Status StatusOf(const grpc::Status& status) const {
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    const bool may_be_connection =
        code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded;
    const std::string message = status.error_message();
    if (!may_be_connection || channel_->GetState(false) == GRPC_CHANNEL_READY) {
      // What gRPC says when the deadline passes on this side.
      if (message == "Deadline Exceeded") return absl::Status(code, "no answer came in time; allow a longer timeout");
      return absl::Status(code, message);
    }
    const size_t colon = message.rfind(": ");
    absl::Status unreachable(code, absl::StrCat("no server answers at ", options_.address, ": ",
                                                colon == std::string::npos ? message : message.substr(colon + 2),
                                                "; start swizzle-server, or name its address"));
    unreachable.SetPayload(kUnreachable, absl::Cord());
    return unreachable;
  }

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  CallCount calls_;
};

}  // namespace

std::unique_ptr<Client> NewClient(const ClientOptions& options) { return std::make_unique<GrpcClient>(options); }

bool IsUnreachable(const absl::Status& status) { return status.GetPayload(kUnreachable).has_value(); }

}  // namespace swizzle::client
