#include "server/rest/rest_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "proto/message_json.h"
#include "server/rest/region_json.h"
#include "server/rest/rest_answer.h"
#include "server/rest/rest_infer.h"
#include "server/rest/rest_orders.h"
#include "server/rest/rest_texts.h"
#include "server/rest/settings_json.h"
#include "server/rest/text_models.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// Of requests that hold no tensors.
constexpr int64_t kMostSmallBytes = 64 << 10;

HttpAnswer Json(const google::protobuf::Message& message) { return {.body = {MessageJson(message)}}; }

// 200 says yes. KServe's client takes 503 for no, and Triton's all but 200.
HttpAnswer Probe(bool yes, const char* what) {
  return {.status = yes ? 200 : 503, .body = {Concat("{\"", what, "\":", yes ? "true" : "false", "}")}};
}

// The refusal of another method than the path takes; none for one of its.
std::optional<HttpAnswer> CheckMethod(const RestPath& path, const HttpHead& head) {
  const bool reads = head.method == "GET" || head.method == "HEAD";
  const bool right = path.methods == RestMethods::kGet    ? reads
                     : path.methods == RestMethods::kPost ? head.method == "POST"
                                                          : reads || head.method == "POST";
  if (right) return std::nullopt;
  const char* const takes = path.methods == RestMethods::kGet    ? "GET"
                            : path.methods == RestMethods::kPost ? "POST"
                                                                 : "GET and POST";
  HttpAnswer refusal = ErrorAnswer(405, Concat(QuotedName(head.target), " takes ", takes));
  refusal.headers.emplace_back("Allow", path.methods == RestMethods::kGet    ? "GET, HEAD"
                                        : path.methods == RestMethods::kPost ? "POST"
                                                                             : "GET, HEAD, POST");
  return refusal;
}

// None for what asks nothing of texts.
std::optional<TextEndpoint> EndpointOf(RestAction action) {
  switch (action) {
    case RestAction::kOpenAiEmbeddings:
      return TextEndpoint::kOpenAiEmbeddings;
    case RestAction::kTeiEmbed:
      return TextEndpoint::kTeiEmbed;
    case RestAction::kTeiEmbedAll:
      return TextEndpoint::kTeiEmbedAll;
    case RestAction::kTeiSimilarity:
      return TextEndpoint::kTeiSimilarity;
    case RestAction::kTeiRerank:
      return TextEndpoint::kTeiRerank;
    case RestAction::kTeiPredict:
      return TextEndpoint::kTeiPredict;
    case RestAction::kTeiTokenize:
      return TextEndpoint::kTeiTokenize;
    case RestAction::kTeiDecode:
      return TextEndpoint::kTeiDecode;
    default:
      return std::nullopt;
  }
}

bool Infers(RestAction action) {
  return action == RestAction::kInfer || action == RestAction::kTeiEmbedSparse || EndpointOf(action).has_value();
}

std::string_view ShownIn(const HttpHead& head) { return head.OnlyHeader("authorization"); }

}  // namespace

HttpLimits HttpLimitsOf(const RpcLimits& limits) {
  return {.connections = limits.max_connections,
          .head_bytes = limits.max_metadata_bytes,
          .body_bytes = limits.transport_bytes,
          .handshake_time = limits.handshake_timeout,
          .body_time = limits.request_timeout,
          .answer_time = limits.response_timeout,
          .idle_time = limits.connection_idle,
          .connection_age = limits.connection_age,
          .threads = std::clamp(AvailableCpus() / 4, 2, 8),
          .stay_on_threads = true};
}

HttpAnswer RestService::Error(int status, const std::string& why) {
  if (status == 400) inference_.calls().refused.malformed.fetch_add(1, std::memory_order_relaxed);
  if (status == 413) inference_.calls().refused.too_large.fetch_add(1, std::memory_order_relaxed);
  if (status == 503) inference_.calls().refused.inflight_bytes.fetch_add(1, std::memory_order_relaxed);
  return ErrorAnswer(status, why);
}

HttpAdmission RestService::Admit(const HttpHead& head) {
  const std::optional<RestPath> path = ParseRestPath(head.target);
  if (!path) return {.refusal = ErrorAnswer(404, Concat("there is no ", QuotedName(head.target), "; see /v2"))};
  if (std::optional<HttpAnswer> refusal = CheckMethod(*path, head)) return {.refusal = *std::move(refusal)};
  const Status allowed = inference_.calls().authorization->CheckCall(kind(), FindAccessRule(path->rule), ShownIn(head));
  if (!allowed.ok()) return {.refusal = ErrorAnswer(allowed)};
  if (path->action == RestAction::kLoad) return {.most_body_bytes = control_->most_load_bytes()};
  if (!Infers(path->action)) return {.most_body_bytes = kMostSmallBytes};
  if (control_ == nullptr) return {.most_body_bytes = inference_.calls().limits.max_message_bytes};
  return {.refusal = ErrorAnswer(403, "this address is for operators; infer at the one that --http-address says")};
}

void RestService::Take(std::shared_ptr<HttpCall> call) {
  const std::optional<RestPath> path = ParseRestPath(call->head().target);
  SWIZZLE_CHECK(path.has_value());  // Admit's
  if (path->action == RestAction::kInfer) {
    return StartRestInfer(inference_.calls(), std::move(call), path->model, path->version);
  }
  if (const std::optional<TextEndpoint> endpoint = EndpointOf(path->action)) {
    return StartRestTexts(inference_.calls(), std::move(call), *endpoint, path->model);
  }
  if (path->action == RestAction::kLoad || path->action == RestAction::kUnload) {
    const bool load = path->action == RestAction::kLoad;
    return StartRestOrder(*control_, inference_.calls(), std::move(call), load, path->model);
  }
  StatusOr<HttpAnswer> answer = Contain("answer", [&] { return Answer(*path, *call); });
  call->Answer(answer.ok() ? *std::move(answer) : ErrorAnswer(answer.status()), nullptr);
}

StatusOr<HttpAnswer> RestService::Answer(const RestPath& path, HttpCall& call) const {
  const std::string_view shown = ShownIn(call.head());
  const auto filled = [&](auto request, auto response, auto fill) -> StatusOr<HttpAnswer> {
    request.set_name(path.model);
    request.set_version(path.version);
    SWIZZLE_RETURN_IF_ERROR((inference_.*fill)(shown, request, response));
    return Json(response);
  };
  switch (path.action) {
    case RestAction::kLive:
      return Probe(true, "live");
    case RestAction::kReady:
      return Probe(inference_.ready(), "ready");
    case RestAction::kServer: {
      inference::ServerMetadataResponse server;
      inference_.FillServer(server);
      server.add_extensions("binary_tensor_data");
      return Json(server);
    }
    case RestAction::kModelReady: {
      inference::ModelReadyRequest request;
      request.set_name(path.model);
      request.set_version(path.version);
      inference::ModelReadyResponse response;
      SWIZZLE_RETURN_IF_ERROR(inference_.FillReady(shown, request, response));
      return Probe(response.ready(), "ready");
    }
    case RestAction::kModel:
      return filled(inference::ModelMetadataRequest(), inference::ModelMetadataResponse(),
                    &InferenceService::FillMetadata);
    case RestAction::kStatistics:
      return filled(inference::ModelStatisticsRequest(), inference::ModelStatisticsResponse(),
                    &InferenceService::FillStatistics);
    case RestAction::kConfig: {
      inference::ModelConfigRequest request;
      request.set_name(path.model);
      request.set_version(path.version);
      inference::ModelConfigResponse response;
      SWIZZLE_RETURN_IF_ERROR(inference_.FillConfig(shown, request, response));
      return Json(response.config());
    }
    case RestAction::kTeiInfo: {
      StatusOr<std::string> info = WriteTextInfo(inference_.calls(), call, path.model);
      return info.ok() ? HttpAnswer{.body = {*std::move(info)}} : TextError(TextEndpoint::kTeiEmbed, info.status());
    }
    case RestAction::kTeiEmbedSparse:  // TEI's status for a model that is none of SPLADE's
      return TextError(TextEndpoint::kTeiEmbed, 424,
                       "no model here gives sparse vectors (SPLADE); /embed gives dense ones, and /embed_all those of "
                       "tokens");
    case RestAction::kIndex:
      return AnswerIndex(call);
    case RestAction::kLogSettings:
    case RestAction::kTraceSettings:
      return AnswerSettings(path, call);
    default:
      return AnswerRegions(path, call);
  }
}

// GET reads, whatever its body is; so does POST without settings.
StatusOr<HttpAnswer> RestService::AnswerSettings(const RestPath& path, HttpCall& call) const {
  const std::shared_ptr<const HttpBody> body = call.TakeBody();
  const std::string_view text = call.head().method == "POST" ? body->text() : std::string_view();
  const std::string_view shown = ShownIn(call.head());
  if (path.action == RestAction::kLogSettings) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto request, ReadLogSettings(text));
    inference::LogSettingsResponse settings;
    SWIZZLE_RETURN_IF_ERROR(inference_.FillLogSettings(shown, kind(), request, settings));
    return HttpAnswer{.body = {WriteSettings(settings)}};
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto request, ReadTraceSettings(text, path.model));
  inference::TraceSettingResponse settings;
  SWIZZLE_RETURN_IF_ERROR(inference_.FillTraceSetting(shown, kind(), request, settings));
  return HttpAnswer{.body = {WriteSettings(settings)}};
}

// `path` is of a region, or, to list and to unregister, of all.
StatusOr<HttpAnswer> RestService::AnswerRegions(const RestPath& path, HttpCall& call) const {
  SharedRegions& regions = inference_.calls().shared_memory;
  const std::shared_ptr<const HttpBody> body = call.TakeBody();
  const auto listed = [&](auto response) -> StatusOr<HttpAnswer> {
    SWIZZLE_RETURN_IF_ERROR(regions.Describe(path.region, response));
    return HttpAnswer{.body = {WriteRegions(response)}};
  };
  const auto unregistered = [&](auto request) {
    request.set_name(path.region);
    return regions.Unregister(request);
  };
  const auto registered = [&](const auto& request) {
    return request.ok() ? regions.Register(*request) : request.status();
  };
  Status status;
  switch (path.action) {
    case RestAction::kSystemRegions:
      return listed(inference::SystemSharedMemoryStatusResponse());
    case RestAction::kCudaRegions:
      return listed(inference::CudaSharedMemoryStatusResponse());
    case RestAction::kRegisterSystem:
      status = registered(ReadSystemRegion(body->text(), path.region));
      break;
    case RestAction::kRegisterCuda:
      status = registered(ReadCudaRegion(body->text(), path.region));
      break;
    case RestAction::kUnregisterSystem:
      status = unregistered(inference::SystemSharedMemoryUnregisterRequest());
      break;
    case RestAction::kUnregisterCuda:
      status = unregistered(inference::CudaSharedMemoryUnregisterRequest());
      break;
    default:
      return MakeError(StatusCode::kUnimplemented, path.rule, " is not served");
  }
  SWIZZLE_RETURN_IF_ERROR(status);
  return HttpAnswer{.body = {"{}"}};
}

StatusOr<HttpAnswer> RestService::AnswerIndex(HttpCall& call) const {
  inference::RepositoryIndexRequest request;
  if (const std::shared_ptr<const HttpBody> body = call.TakeBody(); body->size > 0) {
    const nlohmann::json asked = nlohmann::json::parse(body->text(), nullptr, false);
    if (!asked.is_object()) return InvalidArgument("the body must be a JSON object, or empty");
    if (const auto ready = asked.find("ready"); ready != asked.end()) {
      if (!ready->is_boolean()) return InvalidArgument("'ready' must be true or false");
      request.set_ready(ready->get<bool>());
    }
  }
  inference::RepositoryIndexResponse index;
  SWIZZLE_RETURN_IF_ERROR(inference_.FillIndex(ShownIn(call.head()), request, index));
  std::string text = "[";
  for (const auto& model : index.models()) text += (text.size() > 1 ? "," : "") + MessageJson(model);
  return HttpAnswer{.body = {text + "]"}};
}

}  // namespace swizzle
