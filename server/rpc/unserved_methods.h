// The methods of the service that come later: CUDA shared memory. gRPC answers UNIMPLEMENTED for them by itself, but
// without a word; here the message names the method. What was sent to them is not parsed.
#ifndef SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_
#define SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/raw_service.h"

namespace swizzle {

class UnservedMethods : public RawInferenceService {
 public:
  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  Unary* CudaSharedMemoryStatus(Context* context, const Bytes*, Bytes*) override;
  Unary* CudaSharedMemoryRegister(Context* context, const Bytes*, Bytes*) override;
  Unary* CudaSharedMemoryUnregister(Context* context, const Bytes*, Bytes*) override;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_UNSERVED_METHODS_H_
