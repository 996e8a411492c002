// A stream that ends at once. Header only.
#ifndef SWIZZLE_SERVER_RPC_FAILED_STREAM_H_
#define SWIZZLE_SERVER_RPC_FAILED_STREAM_H_

#include <grpcpp/grpcpp.h>

#include "kernels/base/status.h"
#include "server/rpc/received_message.h"

namespace swizzle {

// Deletes itself.
class FailedStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit FailedStream(const Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_FAILED_STREAM_H_
