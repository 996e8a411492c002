// A stream that ends at once. Header only.
#ifndef SWIZZLE_SERVER_RPC_FAILED_STREAM_H_
#define SWIZZLE_SERVER_RPC_FAILED_STREAM_H_

#include <grpcpp/grpcpp.h>

namespace swizzle {

// `Reactor` is the method's. Deletes itself.
template <typename Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>
class FailedStream final : public Reactor {
 public:
  explicit FailedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_FAILED_STREAM_H_
