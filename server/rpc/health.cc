#include "server/rpc/health.h"

#include "kernels/base/status.h"
#include "server/rpc/admission.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

constexpr int64_t kMostRequestBytes = 4096;

grpc::Status EndOfWatch() { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"); }

Status ParseRequest(const grpc::ByteBuffer& bytes, grpc::health::v1::HealthCheckRequest& request) {
  return Parse(ReceivedMessage(bytes), kMostRequestBytes, "HealthCheckRequest", request);
}

}  // namespace

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One Watch call. All is guarded by the service's mutex, which callers of Offer and End hold. Deletes itself when gRPC
// is done with it.
class HealthService::Watcher final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Watcher(HealthService& health, std::string service) : health_(health), service_(std::move(service)) {}

  const std::string& service() const { return service_; }

  // Sends `status` unless it is what the client knows. While a write runs, only the latest status waits.
  void Offer(ServingStatus status) {
    wanted_ = status;
    if (writing_ || finished_ || wanted_ == sent_) return;
    writing_ = true;
    sent_ = wanted_;
    HealthCheckResponse response;
    response.set_status(wanted_);
    message_ = Serialize(response);
    StartWrite(&message_);
  }

  void End(const grpc::Status& status) {
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(health_.mutex_);
    writing_ = false;
    if (ok) {
      Offer(wanted_);
    } else {
      End(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    MutexLock lock(health_.mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    {
      MutexLock lock(health_.mutex_);
      health_.watchers_.erase(this);
    }
    delete this;
  }

 private:
  HealthService& health_;
  const std::string service_;
  grpc::ByteBuffer message_;
  ServingStatus wanted_ = HealthCheckResponse::UNKNOWN;
  ServingStatus sent_ = HealthCheckResponse::UNKNOWN;
  bool writing_ = false;
  bool finished_ = false;
};

HealthService::~HealthService() {
  MutexLock lock(mutex_);
  SWIZZLE_CHECK(watchers_.empty());
}

void HealthService::SetServing(const std::string& service, bool serving) {
  MutexLock lock(mutex_);
  serving_[service] = serving;
  for (Watcher* watcher : watchers_) {
    if (watcher->service() == service) watcher->Offer(ToldOf(service));
  }
}

void HealthService::HoldWatches() {
  MutexLock lock(mutex_);
  if (!held_.has_value()) held_ = serving_;
}

void HealthService::TellWatches() {
  MutexLock lock(mutex_);
  held_.reset();
  for (Watcher* watcher : watchers_) watcher->Offer(ToldOf(watcher->service()));
}

void HealthService::EndWatches() {
  MutexLock lock(mutex_);
  ending_ = true;
  for (Watcher* watcher : watchers_) watcher->End(EndOfWatch());
}

HealthService::ServingStatus HealthService::StatusOf(const std::map<std::string, bool>& serving,
                                                     const std::string& service) {
  const auto found = serving.find(service);
  if (found == serving.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

HealthService::ServingStatus HealthService::StatusOf(const std::string& service) const {
  return StatusOf(serving_, service);
}

HealthService::ServingStatus HealthService::ToldOf(const std::string& service) const {
  return StatusOf(held_.has_value() ? *held_ : serving_, service);
}

Status HealthService::CheckService(const grpc::CallbackServerContext& context, const std::string& service) const {
  const bool of_server = service.empty() || service == kLivenessService || service == kInferenceService;
  if (of_server || !authorization_->asks_for_tokens()) return absl::OkStatus();
  const std::string_view shown = ShownBy(context);
  SWIZZLE_RETURN_IF_ERROR(authorization_->CheckClass(AccessClass::kMetadata, shown));
  return authorization_->CheckModel(service, shown);
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                               grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const Status status = Contain("answer", [&]() -> Status {
    HealthCheckRequest request;
    SWIZZLE_RETURN_IF_ERROR(ParseRequest(*bytes, request));
    SWIZZLE_RETURN_IF_ERROR(CheckService(*context, request.service()));
    HealthCheckResponse message;
    {
      MutexLock lock(mutex_);
      message.set_status(StatusOf(request.service()));
    }
    if (message.status() == HealthCheckResponse::SERVICE_UNKNOWN) return absl::NotFoundError("no such service");
    *response = Serialize(message);
    return absl::OkStatus();
  });
  reactor->Finish(ToGrpc(status));
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(grpc::CallbackServerContext* context,
                                                                 const grpc::ByteBuffer* bytes) {
  HealthCheckRequest request;
  Status parsed = ParseRequest(*bytes, request);
  if (parsed.ok()) parsed = CheckService(*context, request.service());
  auto* watcher = new Watcher(*this, request.service());
  MutexLock lock(mutex_);
  watchers_.insert(watcher);
  if (!parsed.ok()) {
    watcher->End(ToGrpc(parsed));
    return watcher;
  }
  watcher->Offer(ToldOf(request.service()));
  if (ending_) watcher->End(EndOfWatch());
  return watcher;
}

}  // namespace swizzle
