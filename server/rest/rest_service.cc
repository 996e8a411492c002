#include "server/rest/rest_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "proto/message_json.h"
#include "server/rest/rest_answer.h"
#include "server/rest/rest_infer.h"
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
          .threads = std::clamp(AvailableCpus() / 4, 2, 8)};
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
  const bool right = path->posts ? head.method == "POST" : head.method == "GET" || head.method == "HEAD";
  if (!right) {
    HttpAnswer refusal = ErrorAnswer(405, Concat(path->rule, " takes ", path->posts ? "POST" : "GET"));
    refusal.headers.emplace_back("Allow", path->posts ? "POST" : "GET, HEAD");
    return {.refusal = std::move(refusal)};
  }
  const Status allowed =
      inference_.calls().authorization->CheckCall(ListenerKind::kPublic, FindAccessRule(path->rule), ShownIn(head));
  if (!allowed.ok()) return {.refusal = ErrorAnswer(allowed)};
  const bool infers = path->action == RestAction::kInfer;
  return {.most_body_bytes = infers ? inference_.calls().limits.max_message_bytes : kMostSmallBytes};
}

void RestService::Take(std::shared_ptr<HttpCall> call) {
  const std::optional<RestPath> path = ParseRestPath(call->head().target);
  SWIZZLE_CHECK(path.has_value());  // Admit's
  if (path->action == RestAction::kInfer) {
    return StartRestInfer(inference_.calls(), std::move(call), path->model, path->version);
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
    case RestAction::kIndex:
      return AnswerIndex(call);
    default:
      return Unimplemented("models are loaded and unloaded over gRPC (--control-address)");
  }
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
