// grpc.health.v1. Unlike gRPC's built-in service, which calls the whole server SERVING from its first moment, this one
// knows nothing it was not told.
#ifndef SWIZZLE_SERVER_RPC_HEALTH_H_
#define SWIZZLE_SERVER_RPC_HEALTH_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "proto/health.grpc.pb.h"
#include "server/security/authorization.h"

namespace swizzle {

// The service that is SERVING as long as the process runs, draining included, whatever models do.
inline constexpr char kLivenessService[] = "liveness";
// The service that inference is called by, which probes may name in place of "", the server as a whole.
inline constexpr char kInferenceService[] = "inference.GRPCInferenceService";

// Thread-safe. Outlives the server that it is registered with.
class HealthService final
    : public grpc::health::v1::Health::WithRawCallbackMethod_Check<
          grpc::health::v1::Health::WithRawCallbackMethod_Watch<grpc::health::v1::Health::Service>> {
 public:
  ~HealthService() override;

  // Who may ask about models, from now on; until then, everybody may. What is no model's, anybody may ask. It outlives
  // the service. REQUIRES: no call has come.
  void AskAboutModels(const Authorization& authorization) { authorization_ = &authorization; }

  // Adds the service, or changes its status; watchers are told. "" is the server as a whole.
  void SetServing(const std::string& service, bool serving);

  // Watches hear of no change until TellWatches, those that begin later included; Check does. For a server that says it
  // goes, and takes requests for a while yet: whoever asks for its readiness takes it out of use, which takes time, and
  // clients that watch go on until it takes none. They otherwise leave at once, perhaps before they hear of others.
  void HoldWatches();
  void TellWatches();

  // Ends every watch with UNAVAILABLE, now and from now on, so that the server can shut down.
  void EndWatches();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

 private:
  class Watcher;
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // SERVICE_UNKNOWN for a service that was never set.
  static ServingStatus StatusOf(const std::map<std::string, bool>& serving, const std::string& service);
  ServingStatus StatusOf(const std::string& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What its watches hear.
  ServingStatus ToldOf(const std::string& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status CheckService(const grpc::CallbackServerContext& context, const std::string& service) const;

  const Authorization* authorization_ = &Authorization::Open();
  mutable Mutex mutex_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::map<std::string, bool>> held_ ABSL_GUARDED_BY(mutex_);  // what was so when watches were held
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_HEALTH_H_
