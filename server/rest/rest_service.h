// The Open Inference Protocol over HTTP, as KServe and Triton have it, beside gRPC: who may call, what may come, and
// what each path answers. Inferences go through InferCall, orders through ControlService, all else through what
// InferenceService answers by gRPC.
#ifndef SWIZZLE_SERVER_REST_REST_SERVICE_H_
#define SWIZZLE_SERVER_REST_REST_SERVICE_H_

#include <memory>

#include "kernels/base/status.h"
#include "server/http/http_server.h"
#include "server/rest/rest_path.h"
#include "server/rpc/control_service.h"
#include "server/rpc/inference_service.h"

namespace swizzle {

// Limits of HTTP among those of gRPC. `limits` are settled.
HttpLimits HttpLimitsOf(const RpcLimits& limits);

// Thread-safe. Outlives the server that it is given to, and is outlived by the services that it is given.
class RestService final : public HttpService {
 public:
  // Where clients infer.
  explicit RestService(InferenceService& inference) : inference_(inference) {}
  // Where operators load and unload models, and nobody infers.
  RestService(InferenceService& inference, ControlService& control) : inference_(inference), control_(&control) {}

  HttpAdmission Admit(const HttpHead& head) override;
  void Take(std::shared_ptr<HttpCall> call) override;
  HttpAnswer Error(int status, const std::string& why) override;

 private:
  StatusOr<HttpAnswer> Answer(const RestPath& path, HttpCall& call) const;
  StatusOr<HttpAnswer> AnswerIndex(HttpCall& call) const;
  StatusOr<HttpAnswer> AnswerSettings(const RestPath& path, HttpCall& call) const;
  StatusOr<HttpAnswer> AnswerRegions(const RestPath& path, HttpCall& call) const;
  ListenerKind kind() const { return control_ == nullptr ? ListenerKind::kPublic : ListenerKind::kControl; }

  InferenceService& inference_;
  ControlService* const control_ = nullptr;  // null where clients infer
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_SERVICE_H_
