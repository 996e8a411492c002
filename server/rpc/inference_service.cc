#include "server/rpc/inference_service.h"

#include <utility>

#include "absl/time/clock.h"
#include "model_loader/files/printable_name.h"
#include "server/rpc/admission.h"
#include "server/rpc/log_settings.h"
#include "server/rpc/model_description.h"
#include "server/rpc/received_message.h"
#include "server/rpc/stream_infer.h"
#include "server/rpc/trace_settings.h"
#include "server/rpc/unary_infer.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Of requests that name models and hold no tensors.
constexpr int64_t kMostSmallBytes = 64 << 10;

// Parses a request, lets `fill` make the response, and ends the call. What is thrown would else become gRPC's
// UNIMPLEMENTED, without a word.
template <typename Request, typename Response, typename Fill>
ServerUnaryReactor* Answer(CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response,
                           const Fill& fill) {
  const Status status = Contain("answer", [&]() -> Status {
    Request parsed;
    Response message;
    SWIZZLE_RETURN_IF_ERROR(Parse(ReceivedMessage(*request), kMostSmallBytes, Request::descriptor()->name(), parsed));
    SWIZZLE_RETURN_IF_ERROR(fill(parsed, message));
    ByteBuffer bytes = Serialize(message);
    response->Swap(&bytes);
    return absl::OkStatus();
  });
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

Status NoRepository(const std::string& name) {
  return MakeError(StatusCode::kNotFound, "there is no repository ", QuotedName(name), "; none has a name");
}

}  // namespace

InferenceService::InferenceService(const RpcLimits& limits, Clock& clock)
    : calls_(limits, clock, [this] { return Repository(); }) {}

StatusOr<const ModelRepository*> InferenceService::Repository() const {
  const ModelRepository* repository = repository_.load(std::memory_order_acquire);
  if (repository == nullptr) return MakeError(StatusCode::kUnavailable, "the server is loading its models");
  return repository;
}

Status InferenceService::CheckModel(std::string_view shown, std::string_view model) const {
  return calls_.authorization->CheckModel(model, shown);
}

Status InferenceService::CheckControl(std::string_view shown, ListenerKind listener) const {
  const Authorization& authorization = *calls_.authorization;
  if (listener != ListenerKind::kControl && !authorization.asks_for_tokens()) {
    return MakeError(StatusCode::kPermissionDenied,
                     "settings are changed at an address for operators (--control-address, --http-control-address)");
  }
  return authorization.CheckClass(AccessClass::kControl, shown);
}

StatusOr<std::shared_ptr<ServingModel>> InferenceService::Find(std::string_view name, std::string_view version) const {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, Repository());
  return repository->Find(name, version);
}

void InferenceService::AwaitCalls(absl::Duration patience) const {
  const Instant end = Clock::Real().Now() + patience;
  while (calls_.under_way > 0 && Clock::Real().Now() < end) absl::SleepFor(absl::Milliseconds(1));
}

std::vector<std::string> InferenceService::TakeGreedyPeers() {
  std::vector<std::string> peers = calls_.cancelled.TakeGreedy();
  for (std::string& peer : calls_.unfinished.TakeGreedy()) peers.push_back(std::move(peer));
  return peers;
}

ServerUnaryReactor* InferenceService::ServerLive(CallbackServerContext* context, const ByteBuffer* request,
                                                 ByteBuffer* response) {
  return Answer<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      context, request, response, [](const auto&, inference::ServerLiveResponse& live) {
        live.set_live(true);
        return absl::OkStatus();
      });
}

ServerUnaryReactor* InferenceService::ServerReady(CallbackServerContext* context, const ByteBuffer* request,
                                                  ByteBuffer* response) {
  return Answer<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      context, request, response, [this](const auto&, inference::ServerReadyResponse& response_message) {
        response_message.set_ready(ready());
        return absl::OkStatus();
      });
}

bool InferenceService::ready() const {
  const StatusOr<const ModelRepository*> repository = Repository();
  return ready_allowed_.load(std::memory_order_relaxed) && repository.ok() && (*repository)->readiness().ready;
}

Status InferenceService::FillReady(std::string_view shown, const inference::ModelReadyRequest& request,
                                   inference::ModelReadyResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckModel(shown, request.name()));
  const Status status = Find(request.name(), request.version()).status();
  response.set_ready(status.ok() && !calls_.refusing.load(std::memory_order_relaxed));
  // One that failed, or is not loaded: not ready.
  return absl::IsInternal(status) || absl::IsUnavailable(status) ? absl::OkStatus() : status;
}

ServerUnaryReactor* InferenceService::ModelReady(CallbackServerContext* context, const ByteBuffer* request,
                                                 ByteBuffer* response) {
  return Answer<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      context, request, response,
      [&](const auto& asked, auto& its) { return FillReady(ShownBy(*context), asked, its); });
}

ServerUnaryReactor* InferenceService::ServerMetadata(CallbackServerContext* context, const ByteBuffer* request,
                                                     ByteBuffer* response) {
  return Answer<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      context, request, response, [this](const auto&, inference::ServerMetadataResponse& metadata) {
        FillServer(metadata);
        return absl::OkStatus();
      });
}

void InferenceService::FillServer(inference::ServerMetadataResponse& response) const {
  response.set_name("swizzle");
  response.set_version(SWIZZLE_VERSION);
  response.add_extensions("classification");
  response.add_extensions("model_configuration");
  response.add_extensions("statistics");
  response.add_extensions("model_repository");
  response.add_extensions("logging");
  response.add_extensions("trace");
  if (calls_.shared_memory.serves_files()) response.add_extensions("system_shared_memory");
  if (calls_.shared_memory.serves_devices()) response.add_extensions("cuda_shared_memory");
}

Status InferenceService::FillMetadata(std::string_view shown, const inference::ModelMetadataRequest& request,
                                      inference::ModelMetadataResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckModel(shown, request.name()));
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<ServingModel> serving, Find(request.name(), request.version()));
  response = DescribeModel(*serving->model, (*Repository())->Versions(request.name()));
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::ModelMetadata(CallbackServerContext* context, const ByteBuffer* request,
                                                    ByteBuffer* response) {
  return Answer<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      context, request, response,
      [&](const auto& asked, auto& its) { return FillMetadata(ShownBy(*context), asked, its); });
}

Status InferenceService::FillConfig(std::string_view shown, const inference::ModelConfigRequest& request,
                                    inference::ModelConfigResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckModel(shown, request.name()));
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<ServingModel> serving, Find(request.name(), request.version()));
  if (response.mutable_config()->ParseFromString(serving->config_bytes)) return absl::OkStatus();
  return MakeError(StatusCode::kInternal, "the configuration of model '", request.name(), "' is not UTF-8");
}

ServerUnaryReactor* InferenceService::ModelConfig(CallbackServerContext* context, const ByteBuffer* request,
                                                  ByteBuffer* response) {
  return Answer<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      context, request, response,
      [&](const auto& asked, auto& its) { return FillConfig(ShownBy(*context), asked, its); });
}

Status InferenceService::FillStatistics(std::string_view shown, const inference::ModelStatisticsRequest& request,
                                        inference::ModelStatisticsResponse& response) const {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, Repository());
  const auto add = [&](const ServingModel& serving) {
    *response.add_model_stats() = DescribeStatistics(*serving.model, serving.metrics->Statistics());
  };
  if (!request.name().empty()) {
    SWIZZLE_RETURN_IF_ERROR(CheckModel(shown, request.name()));
    SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<ServingModel> serving,
                             repository->Find(request.name(), request.version()));
    if (!request.version().empty()) {
      add(*serving);
      return absl::OkStatus();
    }
  }
  const Authorization& authorization = *calls_.authorization;
  for (const ModelStatus& status : repository->List()) {
    if (!authorization.AllowsModel(status.name, shown)) continue;
    if (status.state != ModelState::kReady || (!request.name().empty() && status.name != request.name())) continue;
    const StatusOr<std::shared_ptr<ServingModel>> serving =
        repository->Find(status.name, std::to_string(status.version));
    if (serving.ok()) add(**serving);
  }
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::ModelStatistics(CallbackServerContext* context, const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Answer<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      context, request, response,
      [&](const auto& asked, auto& statistics) { return FillStatistics(ShownBy(*context), asked, statistics); });
}

Status InferenceService::FillIndex(std::string_view shown, const inference::RepositoryIndexRequest& request,
                                   inference::RepositoryIndexResponse& response) const {
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, Repository());
  if (!request.repository_name().empty()) {
    return NoRepository(request.repository_name());
  }
  std::vector<ModelStatus> models = repository->List();
  std::erase_if(models,
                [&](const ModelStatus& model) { return !calls_.authorization->AllowsModel(model.name, shown); });
  response = DescribeIndex(models, request.ready());
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::RepositoryIndex(CallbackServerContext* context, const ByteBuffer* request,
                                                      ByteBuffer* response) {
  return Answer<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      context, request, response,
      [&](const auto& asked, auto& index) { return FillIndex(ShownBy(*context), asked, index); });
}

Status InferenceService::FillTraceSetting(std::string_view shown, ListenerKind listener,
                                          const inference::TraceSettingRequest& request,
                                          inference::TraceSettingResponse& response) const {
  TraceSampling* const sampling = calls_.sampler == nullptr ? nullptr : calls_.sampler->trace_sampling();
  if (!request.settings().empty()) {
    SWIZZLE_RETURN_IF_ERROR(CheckControl(shown, listener));
    SWIZZLE_RETURN_IF_ERROR(ApplyTraceSettings(request, sampling));
  } else if (!request.model_name().empty()) {
    SWIZZLE_RETURN_IF_ERROR(CheckModel(shown, request.model_name()));
    SWIZZLE_RETURN_IF_ERROR(Find(request.model_name(), "").status());
  }
  response = DescribeTraceSettings(sampling);
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::TraceSettingAt(ListenerKind listener, CallbackServerContext* context,
                                                     const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::TraceSettingRequest, inference::TraceSettingResponse>(
      context, request, response, [&](const auto& asked, auto& settings) {
        return FillTraceSetting(ShownBy(*context), listener, asked, settings);
      });
}

Status InferenceService::FillLogSettings(std::string_view shown, ListenerKind listener,
                                         const inference::LogSettingsRequest& request,
                                         inference::LogSettingsResponse& response) const {
  if (!request.settings().empty()) {
    SWIZZLE_RETURN_IF_ERROR(CheckControl(shown, listener));
    SWIZZLE_RETURN_IF_ERROR(ApplyLogSettings(request));
  }
  response = DescribeLogSettings();
  return absl::OkStatus();
}

ServerUnaryReactor* InferenceService::LogSettingsAt(ListenerKind listener, CallbackServerContext* context,
                                                    const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::LogSettingsRequest, inference::LogSettingsResponse>(
      context, request, response,
      [&](const auto& asked, auto& settings) { return FillLogSettings(ShownBy(*context), listener, asked, settings); });
}

ServerUnaryReactor* InferenceService::SystemSharedMemoryStatus(CallbackServerContext* context,
                                                               const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::SystemSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusResponse>(
      context, request, response,
      [this](const auto& asked, auto& status) { return calls_.shared_memory.Describe(asked.name(), status); });
}

ServerUnaryReactor* InferenceService::SystemSharedMemoryRegister(CallbackServerContext* context,
                                                                 const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::SystemSharedMemoryRegisterRequest, inference::SystemSharedMemoryRegisterResponse>(
      context, request, response, [this](const auto& asked, auto&) { return calls_.shared_memory.Register(asked); });
}

ServerUnaryReactor* InferenceService::SystemSharedMemoryUnregister(CallbackServerContext* context,
                                                                   const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::SystemSharedMemoryUnregisterRequest, inference::SystemSharedMemoryUnregisterResponse>(
      context, request, response, [this](const auto& asked, auto&) { return calls_.shared_memory.Unregister(asked); });
}

ServerUnaryReactor* InferenceService::CudaSharedMemoryStatus(CallbackServerContext* context, const ByteBuffer* request,
                                                             ByteBuffer* response) {
  return Answer<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
      context, request, response,
      [this](const auto& asked, auto& status) { return calls_.shared_memory.Describe(asked.name(), status); });
}

ServerUnaryReactor* InferenceService::CudaSharedMemoryRegister(CallbackServerContext* context,
                                                               const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::CudaSharedMemoryRegisterRequest, inference::CudaSharedMemoryRegisterResponse>(
      context, request, response, [this](const auto& asked, auto&) { return calls_.shared_memory.Register(asked); });
}

ServerUnaryReactor* InferenceService::CudaSharedMemoryUnregister(CallbackServerContext* context,
                                                                 const ByteBuffer* request, ByteBuffer* response) {
  return Answer<inference::CudaSharedMemoryUnregisterRequest, inference::CudaSharedMemoryUnregisterResponse>(
      context, request, response, [this](const auto& asked, auto&) { return calls_.shared_memory.Unregister(asked); });
}

ServerUnaryReactor* InferenceService::ModelInfer(CallbackServerContext* context, const ByteBuffer* request,
                                                 ByteBuffer* response) {
  return StartInfer(calls_, *context, *request, *response);
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* InferenceService::ModelStreamInfer(CallbackServerContext* context) {
  return StartStreamInfer(calls_, *context);
}

}  // namespace swizzle
