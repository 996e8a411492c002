#include "server/rpc/control_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/config/model_config.h"
#include "server/repository/load_order.h"
#include "server/rpc/failed_stream.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using grpc::ByteBuffer;
using Parameters = google::protobuf::Map<std::string, inference::ModelRepositoryParameter>;

// Of a request to load a model, which may hold its configuration.
constexpr int64_t kMostOrderBytes = 1 << 20;

// Which model a request names, and where: KServe's messages have the name in the first field.
struct Named {
  std::string model;
  bool as_kserve = false;
};

template <typename Request>
StatusOr<Named> NameIn(const Request& request) {
  if (request.model_name().empty()) {
    if (request.repository_name().empty()) return InvalidArgument("the request names no model; give model_name");
    return Named{request.repository_name(), true};
  }
  if (request.repository_name().empty()) return Named{request.model_name(), false};
  return MakeError(StatusCode::kNotFound, "there is no repository ", QuotedName(request.repository_name()),
                   "; none has a name");
}

StatusOr<LoadOrder> OrderOf(const std::string& model, const Parameters& parameters, bool may_override) {
  LoadOrder order{.model = model};
  for (const auto& [key, value] : parameters) {
    if (key.starts_with("file:")) {
      return Unimplemented("parameter ", QuotedName(key), " is not served: put the files into the model's folder");
    }
    if (key != "config") return InvalidArgument("there is no parameter ", QuotedName(key), "; known is 'config'");
    if (!may_override) {
      return MakeError(StatusCode::kPermissionDenied,
                       "parameter 'config' is taken where the server was started with --allow-load-overrides");
    }
    SWIZZLE_ASSIGN_OR_RETURN(order.config, ParseModelConfigJson(value.string_param(), model));
  }
  return order;
}

// Whether the steps of an ensemble are to go with it.
StatusOr<bool> WithDependents(const Parameters& parameters) {
  bool with_dependents = false;
  for (const auto& [key, value] : parameters) {
    if (key != "unload_dependents") {
      return InvalidArgument("there is no parameter ", QuotedName(key), "; known is 'unload_dependents'");
    }
    if (value.parameter_choice_case() != inference::ModelRepositoryParameter::kBoolParam) {
      return InvalidArgument("parameter 'unload_dependents' is true or false");
    }
    with_dependents = value.bool_param();
  }
  return with_dependents;
}

template <typename Request>
StatusOr<Request> ParseOrder(const ByteBuffer& bytes) {
  Request request;
  SWIZZLE_RETURN_IF_ERROR(Parse(ReceivedMessage(bytes), kMostOrderBytes, Request::descriptor()->name(), request));
  return request;
}

// Ends the call once an order is carried out. gRPC keeps `response` until then.
template <typename Response>
ModelRepository::Done Answer(grpc::ServerUnaryReactor* reactor, ByteBuffer* response, const Response& message) {
  return [reactor, response, bytes = Serialize(message)](const Status& status) mutable {
    if (status.ok()) response->Swap(&bytes);
    reactor->Finish(ToGrpc(status));
  };
}

grpc::Status NoInference() {
  return {grpc::StatusCode::PERMISSION_DENIED,
          "this address is for operators; infer at the one that --grpc-address says"};
}

}  // namespace

RpcLimits ControlLimits(const RpcLimits& of_others) {
  constexpr int64_t kTransportBytes = int64_t{16} << 20;
  constexpr int kConnections = 64, kStreams = 16;
  RpcLimits limits = of_others;
  limits.max_message_bytes = kMostOrderBytes;
  limits.transport_bytes = std::min(limits.transport_bytes, kTransportBytes);
  limits.max_connections = std::min(limits.max_connections, kConnections);
  limits.max_streams = std::min(limits.max_streams, kStreams);
  return limits;
}

StatusOr<ModelRepository*> ControlService::Repository() const {
  ModelRepository* const repository = repository_.load(std::memory_order_acquire);
  if (repository == nullptr) return MakeError(StatusCode::kUnavailable, "the server is loading its models");
  return repository;
}

ControlService::Unary* ControlService::ModelInfer(Context* context, const Bytes*, Bytes*) {
  Unary* const reactor = context->DefaultReactor();
  reactor->Finish(NoInference());
  return reactor;
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ControlService::ModelStreamInfer(Context*) {
  return new FailedStream<>(NoInference());
}

ControlService::Unary* ControlService::RepositoryModelLoad(Context* context, const Bytes* bytes, Bytes* response) {
  Unary* const reactor = context->DefaultReactor();
  const Status status = Contain("take the order", [&]() -> Status {
    SWIZZLE_ASSIGN_OR_RETURN(ModelRepository* const repository, Repository());
    SWIZZLE_ASSIGN_OR_RETURN(const auto request, ParseOrder<inference::RepositoryModelLoadRequest>(*bytes));
    SWIZZLE_ASSIGN_OR_RETURN(const Named named, NameIn(request));
    SWIZZLE_RETURN_IF_ERROR(inference_.CheckModel(*context, named.model));
    SWIZZLE_ASSIGN_OR_RETURN(LoadOrder order, OrderOf(named.model, request.parameters(), may_override_));
    inference::RepositoryModelLoadResponse message;
    if (named.as_kserve) {
      message.set_model_name(named.model);
      message.set_is_loaded(true);
    }
    repository->LoadModel(std::move(order), Answer(reactor, response, message));
    return absl::OkStatus();
  });
  if (!status.ok()) reactor->Finish(ToGrpc(status));
  return reactor;
}

ControlService::Unary* ControlService::RepositoryModelUnload(Context* context, const Bytes* bytes, Bytes* response) {
  Unary* const reactor = context->DefaultReactor();
  const Status status = Contain("take the order", [&]() -> Status {
    SWIZZLE_ASSIGN_OR_RETURN(ModelRepository* const repository, Repository());
    SWIZZLE_ASSIGN_OR_RETURN(const auto request, ParseOrder<inference::RepositoryModelUnloadRequest>(*bytes));
    SWIZZLE_ASSIGN_OR_RETURN(const Named named, NameIn(request));
    SWIZZLE_RETURN_IF_ERROR(inference_.CheckModel(*context, named.model));
    SWIZZLE_ASSIGN_OR_RETURN(const bool with_dependents, WithDependents(request.parameters()));
    inference::RepositoryModelUnloadResponse message;
    if (named.as_kserve) {
      message.set_model_name(named.model);
      message.set_is_unloaded(true);
    }
    repository->UnloadModel(named.model, with_dependents, Answer(reactor, response, message));
    return absl::OkStatus();
  });
  if (!status.ok()) reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace swizzle
