// inference.GRPCInferenceService on a model repository. No reaction blocks: a request is decoded, handed to its model's
// batcher, and answered from there. UnservedMethods answers for the methods that come later.
#ifndef SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_
#define SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "proto/grpc_service.grpc.pb.h"
#include "server/repository/model_repository.h"
#include "server/rpc/unserved_methods.h"
#include "server/threading/clock.h"

namespace swizzle {

// The same code and message.
grpc::Status ToGrpc(const Status& status);

// Thread-safe. Outlives the server that it is registered with.
class InferenceService final : public UnservedMethods {
 public:
  // `clock` outlives the service.
  explicit InferenceService(Clock& clock = Clock::Real()) : clock_(clock) {}

  // From now on `repository` serves; until then, everything but ServerLive, ServerReady and ServerMetadata answers
  // UNAVAILABLE. It outlives the service. REQUIRES: called at most once.
  void Serve(const ModelRepository& repository) { repository_.store(&repository, std::memory_order_release); }

  // ServerReady says no from now on; everything else goes on.
  void AnnounceShutdown() { ready_allowed_.store(false, std::memory_order_relaxed); }

  // New inferences are answered UNAVAILABLE from now on.
  void RefuseInferences() { refusing_.store(true, std::memory_order_relaxed); }

  // Returns when no inference is under way any more, its answer written, or after `patience`.
  void AwaitCalls(absl::Duration patience) const;

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const inference::ModelConfigRequest* request,
                                        inference::ModelConfigResponse* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* context,
                                            const inference::ModelStatisticsRequest* request,
                                            inference::ModelStatisticsResponse* response) override;
  // A request that names a model but a version that does not serve is counted for the latest version.
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override;

 private:
  // UNAVAILABLE while models are loaded.
  StatusOr<const ModelRepository*> Repository() const;
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view name, std::string_view version) const;
  Status FillStatistics(const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse& response) const;

  Clock& clock_;
  std::atomic<const ModelRepository*> repository_ = nullptr;
  std::atomic<bool> ready_allowed_ = true;
  std::atomic<bool> refusing_ = false;
  std::atomic<int64_t> calls_ = 0;  // inferences that have begun and that gRPC is not done with
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_
