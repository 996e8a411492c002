// Server reflection (grpc.reflection.v1 and v1alpha), so that grpcurl and its like need no .proto files.
//
// gRPC's own plugin is a synchronous service, which polls on threads that gRPC starts as it likes, and shows every file
// that is linked into the process. This one reacts like all services here, and shows what the services of the server
// are made of, and nothing else.
#ifndef SWIZZLE_SERVER_RPC_REFLECTION_H_
#define SWIZZLE_SERVER_RPC_REFLECTION_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

#include "proto/reflection.grpc.pb.h"
#include "proto/reflection_v1alpha.grpc.pb.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// What can be asked. Thread-safe.
class ServedDescriptors {
 public:
  // Of services by their full names, which are linked in.
  explicit ServedDescriptors(const std::vector<std::string>& services);

  grpc::reflection::v1::ServerReflectionResponse Answer(
      const grpc::reflection::v1::ServerReflectionRequest& request) const;

 private:
  using File = google::protobuf::FileDescriptor;

  void Add(const File& file);  // and what it imports
  // Null for what is not served.
  const File* Find(const grpc::reflection::v1::ServerReflectionRequest& request) const;

  const std::vector<std::string> services_;
  std::set<const File*> files_;
};

// Both versions. Its streams end with those of `calls` (InferStreams), which outlives it: one request is read at a
// time, and who does not read the answer is ended like who reads no response. Outlives the server that the services are
// registered with.
class ReflectionServices {
 public:
  explicit ReflectionServices(InferCalls& calls);

  grpc::Service& v1() { return v1_; }
  grpc::Service& v1alpha() { return v1alpha_; }

 private:
  using Bytes = grpc::ByteBuffer;
  using Reactor = grpc::ServerBidiReactor<Bytes, Bytes>;

  template <typename Service>
  class Raw final : public Service {
   public:
    explicit Raw(ReflectionServices& services) : services_(services) {}
    Reactor* ServerReflectionInfo(grpc::CallbackServerContext* context) override { return services_.Start(*context); }

   private:
    ReflectionServices& services_;
  };
  template <typename Service>
  using RawOf = Raw<typename Service::template WithRawCallbackMethod_ServerReflectionInfo<typename Service::Service>>;

  Reactor* Start(grpc::CallbackServerContext& context);

  InferCalls& calls_;
  const ServedDescriptors descriptors_;
  RawOf<grpc::reflection::v1::ServerReflection> v1_{*this};
  RawOf<grpc::reflection::v1alpha::ServerReflection> v1alpha_{*this};
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_REFLECTION_H_
