#include "server/rpc/inference_service.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/model_description.h"
#include "server/rpc/wire_convert.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Ends a call that has its answer.
ServerUnaryReactor* Finish(CallbackServerContext* context, const Status& status) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

// gRPC keeps the deadline by the monotonic clock as well, and turns it into wall time as it is asked.
Instant DeadlineOf(const CallbackServerContext& context, Clock& clock) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return Instant::InfiniteFuture();
  return clock.FromWall(absl::FromChrono(deadline));
}

// One ModelInfer call to a model that serves, from its decoding to gRPC's OnDone, when it deletes itself. The messages
// are gRPC's and live as long; so do the views that the request holds into them.
class InferCall final : public ServerUnaryReactor {
 public:
  InferCall(std::shared_ptr<ServingModel> model, const inference::ModelInferRequest& message,
            inference::ModelInferResponse& response, Clock& clock, std::atomic<int64_t>& calls)
      : model_(std::move(model)),
        message_(message),
        response_(response),
        clock_(clock),
        start_(clock.Now()),
        calls_(calls) {
    ++calls_;
  }
  ~InferCall() override { --calls_; }

  void RefuseForShutdown() {
    model_->metrics->RecordRejected(Rejection::kDraining, absl::ZeroDuration());
    End(MakeError(StatusCode::kUnavailable, "the server is shutting down"));
  }

  // Hands the request to the batcher. gRPC calls OnCancel and OnDone only after the method that calls this returned, so
  // ticket_ is set before they look at it, however early the batcher is done.
  void Submit(Instant call_deadline) {
    const Status submitted = Contain("take the request", [&] { return TrySubmit(call_deadline); });
    if (!submitted.ok()) End(submitted);
  }

  void OnCancel() override { model_->batcher->Cancel(ticket_); }
  void OnDone() override { delete this; }

 private:
  const ModelSpec& spec() const { return model_->model->spec(); }

  // An error if the batcher has not taken it; nothing throws after it has.
  Status TrySubmit(Instant call_deadline) {
    if (call_deadline <= start_) return absl::DeadlineExceededError("the request came after its deadline");
    call_deadline_ = call_deadline;
    SWIZZLE_RETURN_IF_ERROR(model_->batcher->CheckRoom(call_deadline));
    SWIZZLE_ASSIGN_OR_RETURN(DecodedInfer decoded, DecodeInfer(message_, spec(), start_));
    outputs_ = std::move(decoded.outputs);
    Request& request = decoded.request;
    SWIZZLE_ASSIGN_OR_RETURN(request.tokens, model_->model->CheckRequest(request.inputs));
    request.staged = model_->model->Stage(request.inputs);
    request.deadline = std::min(request.deadline, call_deadline);
    SWIZZLE_ASSIGN_OR_RETURN(ticket_, model_->batcher->Submit(std::move(request), [this](StatusOr<Result> result) {
      OnResult(std::move(result));
    }));
    return absl::OkStatus();
  }

  void OnResult(StatusOr<Result> result) {
    Status status = result.status();
    if (status.ok() && call_deadline_ <= clock_.Now()) {
      status = absl::DeadlineExceededError("the request's deadline passed while it ran");
    }
    if (status.ok()) {
      status = Contain("write the answer", [&] {
        EncodeInfer(message_, spec(), outputs_, *std::move(result), response_);
        return absl::OkStatus();
      });
    }
    End(status);
  }

  // The last thing done with this call: gRPC may delete it from here on.
  void End(const Status& status) {
    model_->metrics->RecordRequest(status.code(), clock_.Now() - start_);
    ServerUnaryReactor::Finish(ToGrpc(status));
  }

  const std::shared_ptr<ServingModel> model_;
  const inference::ModelInferRequest& message_;
  inference::ModelInferResponse& response_;
  Clock& clock_;
  const Instant start_;
  std::atomic<int64_t>& calls_;  // that are not over yet; outlives this
  Instant call_deadline_ = Instant::InfiniteFuture();
  std::vector<int> outputs_;
  Ticket ticket_ = 0;  // 0 is never a ticket
};

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

StatusOr<const ModelRepository*> InferenceService::Repository() const {
  const ModelRepository* repository = repository_.load(std::memory_order_acquire);
  if (repository == nullptr) return MakeError(StatusCode::kUnavailable, "the server is loading its models");
  return repository;
}

StatusOr<std::shared_ptr<ServingModel>> InferenceService::Find(std::string_view name, std::string_view version) const {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, Repository());
  return repository->Find(name, version);
}

void InferenceService::AwaitCalls(absl::Duration patience) const {
  const Instant end = Clock::Real().Now() + patience;
  while (calls_ > 0 && Clock::Real().Now() < end) absl::SleepFor(absl::Milliseconds(1));
}

ServerUnaryReactor* InferenceService::ServerLive(CallbackServerContext* context, const inference::ServerLiveRequest*,
                                                 inference::ServerLiveResponse* response) {
  response->set_live(true);
  return Finish(context, absl::OkStatus());
}

ServerUnaryReactor* InferenceService::ServerReady(CallbackServerContext* context, const inference::ServerReadyRequest*,
                                                  inference::ServerReadyResponse* response) {
  const StatusOr<const ModelRepository*> repository = Repository();
  response->set_ready(ready_allowed_.load(std::memory_order_relaxed) && repository.ok() && (*repository)->AllReady());
  return Finish(context, absl::OkStatus());
}

ServerUnaryReactor* InferenceService::ModelReady(CallbackServerContext* context,
                                                 const inference::ModelReadyRequest* request,
                                                 inference::ModelReadyResponse* response) {
  const Status status = Find(request->name(), request->version()).status();
  response->set_ready(status.ok() && !refusing_.load(std::memory_order_relaxed));
  return Finish(context, absl::IsInternal(status) ? absl::OkStatus() : status);  // a model that failed: not ready
}

ServerUnaryReactor* InferenceService::ServerMetadata(CallbackServerContext* context,
                                                     const inference::ServerMetadataRequest*,
                                                     inference::ServerMetadataResponse* response) {
  response->set_name("swizzle");
  response->set_version(SWIZZLE_VERSION);
  response->add_extensions("model_configuration");
  response->add_extensions("statistics");
  return Finish(context, absl::OkStatus());
}

ServerUnaryReactor* InferenceService::ModelMetadata(CallbackServerContext* context,
                                                    const inference::ModelMetadataRequest* request,
                                                    inference::ModelMetadataResponse* response) {
  const StatusOr<std::shared_ptr<ServingModel>> found = Find(request->name(), request->version());
  if (!found.ok()) return Finish(context, found.status());
  *response = DescribeModel(*(*found)->model, (*Repository())->Versions(request->name()));
  return Finish(context, absl::OkStatus());
}

ServerUnaryReactor* InferenceService::ModelConfig(CallbackServerContext* context,
                                                  const inference::ModelConfigRequest* request,
                                                  inference::ModelConfigResponse* response) {
  const StatusOr<std::shared_ptr<ServingModel>> found = Find(request->name(), request->version());
  if (!found.ok()) return Finish(context, found.status());
  SWIZZLE_CHECK(response->mutable_config()->ParseFromString((*found)->config_bytes));
  return Finish(context, absl::OkStatus());
}

Status InferenceService::FillStatistics(const inference::ModelStatisticsRequest& request,
                                        inference::ModelStatisticsResponse& response) const {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, Repository());
  const auto add = [&](const ServingModel& serving) {
    *response.add_model_stats() = DescribeStatistics(*serving.model, serving.metrics->Statistics());
  };
  if (!request.name().empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<ServingModel> serving,
                             repository->Find(request.name(), request.version()));
    add(*serving);
    return absl::OkStatus();
  }
  for (const ModelStatus& status : repository->List()) {
    const StatusOr<std::shared_ptr<ServingModel>> serving = repository->Find(status.name, "");
    if (serving.ok()) add(**serving);
  }
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::ModelStatistics(CallbackServerContext* context,
                                                      const inference::ModelStatisticsRequest* request,
                                                      inference::ModelStatisticsResponse* response) {
  return Finish(context, FillStatistics(*request, *response));
}

ServerUnaryReactor* InferenceService::ModelInfer(CallbackServerContext* context,
                                                 const inference::ModelInferRequest* request,
                                                 inference::ModelInferResponse* response) {
  StatusOr<std::shared_ptr<ServingModel>> found = Find(request->model_name(), request->model_version());
  if (!found.ok()) {
    const auto latest = Find(request->model_name(), "");
    if (latest.ok()) {
      (*latest)->metrics->RecordRequest(found.status().code(), absl::ZeroDuration());
    } else if (const auto repository = Repository(); repository.ok()) {
      (*repository)->CountUnserved(request->model_name(), found.status().code());
    }
    return Finish(context, found.status());
  }
  auto* call = new InferCall(*std::move(found), *request, *response, clock_, calls_);
  if (refusing_.load(std::memory_order_relaxed)) {
    call->RefuseForShutdown();
  } else {
    call->Submit(DeadlineOf(*context, clock_));
  }
  return call;
}

}  // namespace swizzle
