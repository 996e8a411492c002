// inference.GRPCInferenceService as operators reach it, on a listener of its own: loads and unloads models. What tells
// of models is answered as on the other listener; inference is not. Orders that come by HTTP are taken here, too.
#ifndef SWIZZLE_SERVER_RPC_CONTROL_SERVICE_H_
#define SWIZZLE_SERVER_RPC_CONTROL_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "server/repository/model_repository.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/raw_service.h"
#include "server/rpc/rpc_limits.h"

namespace swizzle {

// The limits of a listener that operators alone use, for which little is to be kept: settled, as `of_others` are. Where
// orders may bring files, they may be as large as messages of others.
RpcLimits ControlLimits(const RpcLimits& of_others, bool may_override);

// Thread-safe. Outlives the server that it is registered with, and is outlived by `inference`.
// Requests may name the model as Triton's clients do, in model_name, or as KServe's do, in the field before it.
class ControlService final : public RawInferenceService {
 public:
  using Context = InferenceService::Context;
  using Unary = InferenceService::Unary;
  using Bytes = InferenceService::Bytes;

  // `may_override`: a load may bring a configuration in place of config.pbtxt, and files in place of the folder.
  ControlService(InferenceService& inference, bool may_override) : inference_(inference), may_override_(may_override) {}

  // From now on `repository` is loaded; until then orders are answered UNAVAILABLE. It outlives this.
  void Serve(ModelRepository& repository) { repository_.store(&repository, std::memory_order_release); }

  Unary* ServerLive(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ServerLive(context, request, response);
  }
  Unary* ServerReady(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ServerReady(context, request, response);
  }
  Unary* ModelReady(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ModelReady(context, request, response);
  }
  Unary* ServerMetadata(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ServerMetadata(context, request, response);
  }
  Unary* ModelMetadata(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ModelMetadata(context, request, response);
  }
  Unary* ModelConfig(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ModelConfig(context, request, response);
  }
  Unary* ModelStatistics(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.ModelStatistics(context, request, response);
  }
  Unary* RepositoryIndex(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.RepositoryIndex(context, request, response);
  }
  Unary* TraceSetting(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.TraceSettingAt(ListenerKind::kControl, context, request, response);
  }
  Unary* LogSettings(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.LogSettingsAt(ListenerKind::kControl, context, request, response);
  }
  Unary* SystemSharedMemoryStatus(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.SystemSharedMemoryStatus(context, request, response);
  }
  Unary* SystemSharedMemoryRegister(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.SystemSharedMemoryRegister(context, request, response);
  }
  Unary* SystemSharedMemoryUnregister(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.SystemSharedMemoryUnregister(context, request, response);
  }
  Unary* CudaSharedMemoryStatus(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.CudaSharedMemoryStatus(context, request, response);
  }
  Unary* CudaSharedMemoryRegister(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.CudaSharedMemoryRegister(context, request, response);
  }
  Unary* CudaSharedMemoryUnregister(Context* context, const Bytes* request, Bytes* response) override {
    return inference_.CudaSharedMemoryUnregister(context, request, response);
  }
  Unary* ModelInfer(Context* context, const Bytes* request, Bytes* response) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* ModelStreamInfer(Context* context) override;
  // Answered when the model serves, or has failed to: INTERNAL, with the reason.
  Unary* RepositoryModelLoad(Context* context, const Bytes* request, Bytes* response) override;
  // Answered at once: requests that the model has are finished meanwhile.
  Unary* RepositoryModelUnload(Context* context, const Bytes* request, Bytes* response) override;

  // What these two do, whichever protocol asks. `shown` is the value of the one header "authorization". The call itself
  // was allowed; which models who calls may use is asked here. OK: `done` is called once.
  Status Load(std::string_view shown, inference::RepositoryModelLoadRequest& request, ModelRepository::Done done) const;
  Status Unload(std::string_view shown, const inference::RepositoryModelUnloadRequest& request,
                ModelRepository::Done done) const;
  // The largest order to load a model: it may bring files.
  int64_t most_load_bytes() const;
  // What an order of `bytes` holds of the bytes in flight, `memory` of them, until it is carried out. Null for one that
  // is as small as orders are that bring no files. RESOURCE_EXHAUSTED where there is no room.
  StatusOr<std::shared_ptr<HeldBytes>> Hold(int64_t bytes, int64_t memory);

 private:
  StatusOr<ModelRepository*> Repository() const;

  InferenceService& inference_;
  const bool may_override_;
  std::atomic<ModelRepository*> repository_ = nullptr;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CONTROL_SERVICE_H_
