#include "server/rpc/admission.h"

#include <iterator>
#include <optional>
#include <vector>

#include "proto/grpc_service.grpc.pb.h"
#include "server/rpc/failed_stream.h"
#include "server/rpc/received_message.h"

namespace swizzle {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

// As gRPC would run the method's own handler. It is done with its handlers when they return.
void Refuse(RpcMethod::RpcType type, const MethodHandler::HandlerParameter& call, const grpc::Status& status) {
  if (type == RpcMethod::NORMAL_RPC) {
    grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>([&status](CallbackServerContext* context,
                                                                           const ByteBuffer*, ByteBuffer*) {
      grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
      reactor->Finish(status);
      return reactor;
    }).RunHandler(call);
  } else if (type == RpcMethod::SERVER_STREAMING) {
    grpc::internal::CallbackServerStreamingHandler<ByteBuffer, ByteBuffer>([&status](CallbackServerContext*,
                                                                                     const ByteBuffer*) {
      return new FailedStream<grpc::ServerWriteReactor<ByteBuffer>>(status);
    }).RunHandler(call);
  } else {
    grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>([&status](CallbackServerContext*) {
      return new FailedStream<>(status);
    }).RunHandler(call);
  }
}

class AdmittingHandler final : public MethodHandler {
 public:
  AdmittingHandler(MethodHandler& inner, const Admission& admission, std::string_view method, RpcMethod::RpcType type)
      : inner_(inner), admission_(admission), rule_(FindAccessRule(method)), type_(type) {}

  void* Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status, void** data) override {
    return inner_.Deserialize(call, request, status, data);
  }

  void RunHandler(const HandlerParameter& call) override {
    const Authorization& authorization = *admission_.authorization;
    const std::string_view shown = authorization.asks_for_tokens() ? ShownBy(*call.server_context) : "";
    const Status status = authorization.CheckCall(admission_.listener, rule_, shown);
    if (status.ok()) {
      inner_.RunHandler(call);
    } else {
      Refuse(type_, call, ToGrpc(status));
    }
  }

 private:
  MethodHandler& inner_;
  const Admission admission_;
  const std::optional<AccessRule> rule_;  // none: nobody may call it
  const RpcMethod::RpcType type_;
};

// What a service keeps for those derived from it.
class OpenedService : public grpc::Service {
 public:
  static MethodHandler& HandlerOf(grpc::Service& service, int method) {
    MethodHandler* const handler = (service.*&OpenedService::GetHandler)(method);
    SWIZZLE_CHECK(handler != nullptr);
    return *handler;
  }
};

RpcMethod::RpcType TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (!method.client_streaming()) {
    return method.server_streaming() ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
  }
  SWIZZLE_CHECK(method.server_streaming());  // no service of ours streams one way, from clients
  return RpcMethod::BIDI_STREAMING;
}

// Methods have the order of the .proto, in gRPC's code as in the descriptor.
class AdmittedService final : public grpc::Service {
 public:
  AdmittedService(grpc::Service& inner, const google::protobuf::ServiceDescriptor& service,
                  const Admission& admission) {
    for (int i = 0; i < service.method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service.method(i);
      names_.push_back(std::make_unique<std::string>(Concat("/", service.full_name(), "/", method.name())));
      const RpcMethod::RpcType type = TypeOf(method);
      AddMethod(new RpcServiceMethod(names_.back()->c_str(), type, nullptr));
      MarkMethodRawCallback(i,
                            new AdmittingHandler(OpenedService::HandlerOf(inner, i), admission, *names_.back(), type));
    }
  }

 private:
  std::vector<std::unique_ptr<std::string>> names_;  // which gRPC refers to
};

}  // namespace

std::string_view ShownBy(const grpc::ServerContextBase& context) {
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first == last || std::next(first) != last) return {};
  return {first->second.data(), first->second.size()};
}

StatusOr<std::unique_ptr<grpc::Service>> NewAdmittedService(const ServedService& served, const Admission& admission) {
  const auto* const descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(served.name);
  if (descriptor == nullptr) return InvalidArgument("there is no service ", served.name);
  return std::make_unique<AdmittedService>(*served.service, *descriptor, admission);
}

}  // namespace swizzle
