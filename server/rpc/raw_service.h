// The service with messages as bytes, so that each is looked at before it is parsed (received_message.h).
#ifndef SWIZZLE_SERVER_RPC_RAW_SERVICE_H_
#define SWIZZLE_SERVER_RPC_RAW_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "proto/grpc_service.grpc.pb.h"

namespace swizzle {

namespace raw_service {

// Each of gRPC's classes makes one method of the one below raw.
template <typename Base, template <typename> typename... Methods>
struct Stack {
  using Type = Base;
};
template <typename Base, template <typename> typename First, template <typename> typename... Rest>
struct Stack<Base, First, Rest...> {
  using Type = First<typename Stack<Base, Rest...>::Type>;
};

using Grpc = inference::GRPCInferenceService;

}  // namespace raw_service

using RawInferenceService = raw_service::Stack<
    raw_service::Grpc::Service, raw_service::Grpc::WithRawCallbackMethod_ServerLive,
    raw_service::Grpc::WithRawCallbackMethod_ServerReady, raw_service::Grpc::WithRawCallbackMethod_ModelReady,
    raw_service::Grpc::WithRawCallbackMethod_ServerMetadata, raw_service::Grpc::WithRawCallbackMethod_ModelMetadata,
    raw_service::Grpc::WithRawCallbackMethod_ModelInfer, raw_service::Grpc::WithRawCallbackMethod_ModelStreamInfer,
    raw_service::Grpc::WithRawCallbackMethod_ModelConfig, raw_service::Grpc::WithRawCallbackMethod_ModelStatistics,
    raw_service::Grpc::WithRawCallbackMethod_RepositoryIndex,
    raw_service::Grpc::WithRawCallbackMethod_RepositoryModelLoad,
    raw_service::Grpc::WithRawCallbackMethod_RepositoryModelUnload,
    raw_service::Grpc::WithRawCallbackMethod_SystemSharedMemoryStatus,
    raw_service::Grpc::WithRawCallbackMethod_SystemSharedMemoryRegister,
    raw_service::Grpc::WithRawCallbackMethod_SystemSharedMemoryUnregister,
    raw_service::Grpc::WithRawCallbackMethod_CudaSharedMemoryStatus,
    raw_service::Grpc::WithRawCallbackMethod_CudaSharedMemoryRegister,
    raw_service::Grpc::WithRawCallbackMethod_CudaSharedMemoryUnregister,
    raw_service::Grpc::WithRawCallbackMethod_TraceSetting, raw_service::Grpc::WithRawCallbackMethod_LogSettings>::Type;

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_RAW_SERVICE_H_
