#include "client/client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/channel.h"
#include "client/infer_stream.h"
#include "client/retry_policy.h"
#include "client/wire_format.h"
#include "grpcpp/alarm.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_service.grpc.pb.h"

namespace swizzle::client {
namespace {

constexpr char kUnreachable[] = "swizzle.dev/unreachable";
constexpr char kAttempts[] = "swizzle.dev/attempts";
constexpr absl::Duration kReadyPollInterval = absl::Milliseconds(50);

// By the monotonic clock, which setting the time doesn't move.
gpr_timespec DeadlineIn(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

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

// What the server asks to wait before another attempt, where it does.
std::optional<absl::Duration> PushbackOf(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("grpc-retry-pushback-ms");
  if (found == trailers.end()) return std::nullopt;
  int64_t milliseconds = 0;
  const bool valid = absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()), &milliseconds);
  return absl::Milliseconds(valid ? milliseconds : -1);
}

class GrpcClient : public Client {
 public:
  explicit GrpcClient(const ClientOptions& options)
      : options_(options),
        usable_(TargetOf(options.address).status()),
        channel_(NewChannel(options)),
        stub_(inference::GRPCInferenceService::NewStub(channel_)),
        retries_(options.retries),
        compresses_(options.gzip) {}

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
    return Order(&Stub::RepositoryModelLoad, request, timeout);
  }

  absl::Status UnloadModel(const std::string& model) override {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    return Order(&Stub::RepositoryModelUnload, request, options_.timeout);
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
    CallAttempts attempts(retries_, TimeoutOf(request), true);
    auto response = Attempt(&Stub::ModelInfer, wire, attempts, compresses_.load());
    return ResultOf(std::move(response), attempts);
  }

  std::shared_ptr<PendingCall> InferAsync(const InferRequest& request, InferCallback done) override;

  std::unique_ptr<InferStream> OpenStream(StreamCallbacks callbacks, absl::Duration timeout) override {
    auto context = std::make_unique<grpc::ClientContext>();
    Prepare(*context, timeout > absl::ZeroDuration() ? timeout : absl::InfiniteDuration(), compresses_.load());
    calls_.Add();
    return StartStream({.stub = *stub_,
                        .context = std::move(context),
                        .status =
                            [this](const grpc::Status& status) {
                              if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) compresses_ = false;
                              return StatusOf(status);
                            },
                        .gone = [this] { calls_.Remove(); }},
                       std::move(callbacks));
  }

 private:
  using Stub = inference::GRPCInferenceService::Stub;
  class AsyncInfer;

  void Prepare(grpc::ClientContext& context, absl::Duration timeout, bool compress) const {
    if (timeout < absl::InfiniteDuration()) context.set_deadline(DeadlineIn(timeout));
    if (compress) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    if (!options_.token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
  }

  // What to wait before the next attempt; none where the call is over. A server that doesn't take what is compressed
  // has not looked at it.
  std::optional<absl::Duration> WaitAfter(CallAttempts& attempts, const grpc::Status& status,
                                          const grpc::ClientContext& context, bool& compressed) {
    if (!usable_.ok()) return std::nullopt;
    if (compressed && status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      compressed = false;
      compresses_ = false;
      attempts.Uncount();
      return absl::ZeroDuration();
    }
    return attempts.WaitAfter(static_cast<absl::StatusCode>(status.error_code()), PushbackOf(context));
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Attempt(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                   const Request& request, CallAttempts& attempts, bool compressed = false) {
    for (;;) {
      grpc::ClientContext context;
      Prepare(context, attempts.Begin(), compressed);
      Response response;
      const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
      if (status.ok()) {
        attempts.Succeeded();
        return response;
      }
      const std::optional<absl::Duration> wait = WaitAfter(attempts, status, context, compressed);
      if (!wait.has_value()) return StatusOf(status, attempts.made());
      absl::SleepFor(*wait);
    }
  }

  // A question, which may be asked again.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration timeout) {
    CallAttempts attempts(retries_, timeout, true);
    return Attempt(method, request, attempts);
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    return Call(method, request, options_.timeout);
  }

  // What is done once.
  template <typename Request, typename Response>
  absl::Status Order(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request, absl::Duration timeout) {
    CallAttempts attempts(retries_, timeout, false);
    return Attempt(method, request, attempts).status();
  }

  static absl::StatusOr<InferResult> ResultOf(absl::StatusOr<inference::ModelInferResponse>&& response,
                                              const CallAttempts& attempts) {
    if (!response.ok()) return response.status();
    absl::StatusOr<InferResult> result = FromWire(*std::move(response));
    if (result.ok()) result->attempts = attempts.made();
    return result;
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
  absl::Status StatusOf(const grpc::Status& status, int attempts = 1) const {
    if (!usable_.ok()) return usable_;
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    const bool may_be_connection =
        code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded;
    std::string message = status.error_message();
    const bool unreachable = may_be_connection && channel_->GetState(false) != GRPC_CHANNEL_READY;
    if (unreachable) {
      const size_t colon = message.rfind(": ");
      message = absl::StrCat("no server answers at ", options_.address, ": ",
                             colon == std::string::npos ? message : message.substr(colon + 2),
                             "; start swizzle-server, or name its address");
    } else if (may_be_connection && message == "Deadline Exceeded") {  // what gRPC says when it passes on this side
      message = "no answer came in time; allow a longer timeout";
    }
    if (attempts > 1) absl::StrAppend(&message, " (after ", attempts, " attempts)");
    absl::Status result(code, message);
    if (unreachable) result.SetPayload(kUnreachable, absl::Cord());
    if (attempts > 1) result.SetPayload(kAttempts, absl::Cord(absl::StrCat(attempts)));
    return result;
  }

  const ClientOptions options_;
  const absl::Status usable_;  // the address
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  RetryPolicy retries_;
  std::atomic<bool> compresses_;  // requests, until a server takes none
  CallCount calls_;
};

// One call by gRPC's callback interface, alive until its callback has run and its handle is dropped. Each attempt has a
// context of its own, and each wait an alarm.
class GrpcClient::AsyncInfer final : public PendingCall, public std::enable_shared_from_this<AsyncInfer> {
 public:
  AsyncInfer(GrpcClient& client, absl::Duration timeout, InferCallback done)
      : client_(client),
        attempts_(client.retries_, timeout, true),
        compressed_(client.compresses_.load()),
        done_(std::move(done)) {}

  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  // Makes an attempt.
  void Start() {
    grpc::ClientContext* context = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_) {
        context_ = std::make_unique<grpc::ClientContext>();  // holds the channel
        context = context_.get();
        client_.Prepare(*context, attempts_.Begin(), compressed_);
      }
    }
    if (context == nullptr) return Finish(absl::CancelledError("the call was cancelled"));
    response_.Clear();
    client_.stub_->async()->ModelInfer(context, &request_, &response_,
                                       [self = shared_from_this()](const grpc::Status& status) mutable {
                                         std::exchange(self, nullptr)->Over(status);
                                       });
  }

  // Runs the callback. Afterwards the client may be gone, but not before this call is: see ~GrpcClient.
  void Finish(absl::StatusOr<InferResult> result) {
    {
      const std::lock_guard lock(mutex_);
      context_ = nullptr;
      alarm_ = nullptr;
    }
    std::move(done_)(std::move(result));
    done_ = nullptr;
    client_.calls_.Remove();
  }

  inference::ModelInferRequest request_;

 private:
  void Over(const grpc::Status& status) {
    if (status.ok()) {
      attempts_.Succeeded();
      return Finish(ResultOf(std::move(response_), attempts_));
    }
    const std::optional<absl::Duration> wait = client_.WaitAfter(attempts_, status, *context_, compressed_);
    if (!wait.has_value()) return Finish(client_.StatusOf(status, attempts_.made()));
    const std::lock_guard lock(mutex_);
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(DeadlineIn(cancelled_ ? absl::ZeroDuration() : *wait),
                [self = shared_from_this()](bool) mutable { std::exchange(self, nullptr)->Start(); });
  }

  GrpcClient& client_;  // until Finish
  CallAttempts attempts_;
  bool compressed_;
  inference::ModelInferResponse response_;
  InferCallback done_;

  std::mutex mutex_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::Alarm> alarm_;
  bool cancelled_ = false;
};

std::shared_ptr<PendingCall> GrpcClient::InferAsync(const InferRequest& request, InferCallback done) {
  auto call = std::make_shared<AsyncInfer>(*this, TimeoutOf(request), std::move(done));
  calls_.Add();
  if (const absl::Status status = ToWire(request, call->request_); !status.ok()) {
    call->Finish(status);
  } else {
    call->Start();
  }
  return call;
}

}  // namespace

std::unique_ptr<Client> NewClient(const ClientOptions& options) { return std::make_unique<GrpcClient>(options); }

bool IsUnreachable(const absl::Status& status) { return status.GetPayload(kUnreachable).has_value(); }

int AttemptsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kAttempts);
  int attempts = 1;
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &attempts) ? attempts : 1;
}

}  // namespace swizzle::client
