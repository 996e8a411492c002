// inference.GRPCInferenceService on a model repository. No reaction blocks: a request is decoded, handed to its model's
// batcher, and answered from there.
#ifndef SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_
#define SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/status.h"
#include "server/repository/model_repository.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/raw_service.h"
#include "server/rpc/rpc_limits.h"
#include "server/threading/clock.h"

namespace swizzle {

// Thread-safe. Outlives the server that it is registered with.
class InferenceService final : public RawInferenceService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  // `limits` are settled; by default, for a GiB of memory. `clock` outlives the service.
  explicit InferenceService(const RpcLimits& limits, Clock& clock = Clock::Real());
  explicit InferenceService(Clock& clock = Clock::Real()) : InferenceService(Settle({}, 1 << 30, 1024), clock) {}

  // From now on `repository` serves; until then, everything but ServerLive, ServerReady and ServerMetadata answers
  // UNAVAILABLE. It outlives the service. REQUIRES: called at most once.
  void Serve(const ModelRepository& repository) { repository_.store(&repository, std::memory_order_release); }

  // Who may use which model, from now on; until then, everybody may use all. It outlives the service. REQUIRES: no call
  // has come.
  void AskAboutModels(const Authorization& authorization) { calls_.authorization = &authorization; }

  // ServerReady says no from now on; everything else goes on.
  void AnnounceShutdown() { ready_allowed_.store(false, std::memory_order_relaxed); }

  // Of the inferences from now on some are logged and traced. Outlives the service. REQUIRES: no call has come yet.
  void Sample(RequestSampler& sampler) { calls_.sampler = &sampler; }

  // New inferences are answered UNAVAILABLE from now on. Streams get the answers to what was read of them, and end.
  void RefuseInferences() {
    calls_.refusing.store(true, std::memory_order_relaxed);
    calls_.streams.EndAll();
  }

  // Returns when no inference is under way any more, its answer written, or after `patience`.
  void AwaitCalls(absl::Duration patience) const;

  // Ends calls whose responses are not read; to be called again and again.
  void EndLateResponses() { calls_.responses.EndLate(); }
  // Ends streams on connections that are of age (infer_streams.h); likewise.
  void EndAgedStreams(absl::FunctionRef<std::optional<Instant>(const std::string& peer)> accepted) {
    calls_.streams.EndAged(calls_.limits, calls_.clock.Now(), accepted);
  }
  // Peers whose connections have too many calls, or cancelled too many, since this was asked last.
  std::vector<std::string> TakeGreedyPeers();
  const InferCalls& calls() const { return calls_; }
  InferCalls& calls() { return calls_; }

  Unary* ServerLive(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ServerReady(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ModelReady(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ServerMetadata(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ModelMetadata(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ModelConfig(Context* context, const Bytes* request, Bytes* response) override;
  Unary* ModelStatistics(Context* context, const Bytes* request, Bytes* response) override;
  Unary* RepositoryIndex(Context* context, const Bytes* request, Bytes* response) override;
  // Without settings these two read, which is metadata; with some they change them, which is control.
  Unary* TraceSetting(Context* context, const Bytes* request, Bytes* response) override {
    return TraceSettingAt(ListenerKind::kPublic, context, request, response);
  }
  Unary* LogSettings(Context* context, const Bytes* request, Bytes* response) override {
    return LogSettingsAt(ListenerKind::kPublic, context, request, response);
  }
  // The same where calls come to `listener`.
  Unary* TraceSettingAt(ListenerKind listener, Context* context, const Bytes* request, Bytes* response);
  Unary* LogSettingsAt(ListenerKind listener, Context* context, const Bytes* request, Bytes* response);
  Unary* SystemSharedMemoryStatus(Context* context, const Bytes* request, Bytes* response) override;
  Unary* SystemSharedMemoryRegister(Context* context, const Bytes* request, Bytes* response) override;
  Unary* SystemSharedMemoryUnregister(Context* context, const Bytes* request, Bytes* response) override;
  Unary* CudaSharedMemoryStatus(Context* context, const Bytes* request, Bytes* response) override;
  Unary* CudaSharedMemoryRegister(Context* context, const Bytes* request, Bytes* response) override;
  Unary* CudaSharedMemoryUnregister(Context* context, const Bytes* request, Bytes* response) override;
  // A request that names a model but a version that does not serve is counted for the latest version.
  Unary* ModelInfer(Context* context, const Bytes* request, Bytes* response) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* ModelStreamInfer(Context* context) override;

  // What these answer, whichever protocol asks. `shown` is the value of the one header "authorization". The call itself
  // was allowed; which models who calls may use is asked here.
  bool ready() const;
  void FillServer(inference::ServerMetadataResponse& response) const;
  Status FillReady(std::string_view shown, const inference::ModelReadyRequest& request,
                   inference::ModelReadyResponse& response) const;
  Status FillMetadata(std::string_view shown, const inference::ModelMetadataRequest& request,
                      inference::ModelMetadataResponse& response) const;
  Status FillConfig(std::string_view shown, const inference::ModelConfigRequest& request,
                    inference::ModelConfigResponse& response) const;
  Status FillStatistics(std::string_view shown, const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse& response) const;
  Status FillIndex(std::string_view shown, const inference::RepositoryIndexRequest& request,
                   inference::RepositoryIndexResponse& response) const;
  // Settings that are read or, where the request has some, changed, by a call that came to `listener`.
  Status FillTraceSetting(std::string_view shown, ListenerKind listener, const inference::TraceSettingRequest& request,
                          inference::TraceSettingResponse& response) const;
  Status FillLogSettings(std::string_view shown, ListenerKind listener, const inference::LogSettingsRequest& request,
                         inference::LogSettingsResponse& response) const;
  // Whether who shows this may use the model, there or not.
  Status CheckModel(std::string_view shown, std::string_view model) const;

 private:
  // UNAVAILABLE while models are loaded.
  StatusOr<const ModelRepository*> Repository() const;
  // Whether who calls may change the server: the one place that asks, of RPCs that read as well.
  Status CheckControl(std::string_view shown, ListenerKind listener) const;
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view name, std::string_view version) const;

  std::atomic<const ModelRepository*> repository_ = nullptr;
  std::atomic<bool> ready_allowed_ = true;
  InferCalls calls_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFERENCE_SERVICE_H_
