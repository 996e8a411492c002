#include "server/rpc/inference_service.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/rpc/model_description.h"
#include "server/rpc/wire_convert.h"

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
            inference::ModelInferResponse& response, Clock& clock)
      : model_(std::move(model)), message_(message), response_(response), clock_(clock), start_(clock.Now()) {}

  void RefuseForShutdown() {
    model_->metrics->RecordRejected(Rejection::kDraining);
    End(MakeError(StatusCode::kUnavailable, "the server is shutting down"));
  }

  // Hands the request to the batcher. gRPC calls OnCancel and OnDone only after the method that calls this returned, so
  // ticket_ is set before they look at it, however early the batcher is done.
  void Submit(Instant call_deadline) {
    StatusOr<DecodedInfer> decoded = DecodeInfer(message_, spec(), start_);
    if (!decoded.ok()) return End(decoded.status());
    outputs_ = std::move(decoded->outputs);
    const StatusOr<int64_t> tokens = model_->model->CheckRequest(decoded->request.inputs);
    if (!tokens.ok()) return End(tokens.status());
    decoded->request.tokens = *tokens;
    decoded->request.staged = model_->model->Stage(decoded->request.inputs);
    decoded->request.deadline = std::min(decoded->request.deadline, call_deadline);
    StatusOr<Ticket> ticket = model_->batcher->Submit(std::move(decoded->request),
                                                      [this](StatusOr<Result> result) { OnResult(std::move(result)); });
    if (!ticket.ok()) return End(ticket.status());
    ticket_ = *ticket;
  }

  void OnCancel() override { model_->batcher->Cancel(ticket_); }
  void OnDone() override { delete this; }

 private:
  const ModelSpec& spec() const { return model_->model->spec(); }

  void OnResult(StatusOr<Result> result) {
    if (result.ok()) EncodeInfer(message_, spec(), outputs_, *std::move(result), response_);
    End(result.status());
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
    if (latest.ok()) (*latest)->metrics->RecordRequest(found.status().code(), absl::ZeroDuration());
    return Finish(context, found.status());
  }
  auto* call = new InferCall(*std::move(found), *request, *response, clock_);
  if (refusing_.load(std::memory_order_relaxed)) {
    call->RefuseForShutdown();
  } else {
    call->Submit(DeadlineOf(*context, clock_));
  }
  return call;
}

}  // namespace swizzle
