// The methods of the service that come later. gRPC answers UNIMPLEMENTED for them by itself, but without a word; here
// the message names the method.
#ifndef SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_
#define SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_

#include <grpcpp/grpcpp.h>

#include "proto/grpc_service.grpc.pb.h"

namespace swizzle {

class UnservedMethods : public inference::GRPCInferenceService::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>* ModelStreamInfer(
      Context* context) override;
  Unary* RepositoryIndex(Context* context, const inference::RepositoryIndexRequest*,
                         inference::RepositoryIndexResponse*) override;
  Unary* RepositoryModelLoad(Context* context, const inference::RepositoryModelLoadRequest*,
                             inference::RepositoryModelLoadResponse*) override;
  Unary* RepositoryModelUnload(Context* context, const inference::RepositoryModelUnloadRequest*,
                               inference::RepositoryModelUnloadResponse*) override;
  Unary* SystemSharedMemoryStatus(Context* context, const inference::SystemSharedMemoryStatusRequest*,
                                  inference::SystemSharedMemoryStatusResponse*) override;
  Unary* SystemSharedMemoryRegister(Context* context, const inference::SystemSharedMemoryRegisterRequest*,
                                    inference::SystemSharedMemoryRegisterResponse*) override;
  Unary* SystemSharedMemoryUnregister(Context* context, const inference::SystemSharedMemoryUnregisterRequest*,
                                      inference::SystemSharedMemoryUnregisterResponse*) override;
  Unary* CudaSharedMemoryStatus(Context* context, const inference::CudaSharedMemoryStatusRequest*,
                                inference::CudaSharedMemoryStatusResponse*) override;
  Unary* CudaSharedMemoryRegister(Context* context, const inference::CudaSharedMemoryRegisterRequest*,
                                  inference::CudaSharedMemoryRegisterResponse*) override;
  Unary* CudaSharedMemoryUnregister(Context* context, const inference::CudaSharedMemoryUnregisterRequest*,
                                    inference::CudaSharedMemoryUnregisterResponse*) override;
  Unary* TraceSetting(Context* context, const inference::TraceSettingRequest*,
                      inference::TraceSettingResponse*) override;
  Unary* LogSettings(Context* context, const inference::LogSettingsRequest*, inference::LogSettingsResponse*) override;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_
