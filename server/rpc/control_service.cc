#include "server/rpc/control_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/config/model_config.h"
#include "server/repository/load_order.h"
#include "server/rpc/admission.h"
#include "server/rpc/failed_stream.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using grpc::ByteBuffer;
using Parameters = google::protobuf::Map<std::string, inference::ModelRepositoryParameter>;

// Of a request to load a model that brings no files: it may hold its configuration.
constexpr int64_t kMostOrderBytes = 1 << 20;

// Which model a request names: KServe's messages have the name in the first field.
template <typename Request>
StatusOr<std::string> NameIn(const Request& request) {
  if (request.model_name().empty()) {
    if (request.repository_name().empty()) return InvalidArgument("the request names no model; give model_name");
    return request.repository_name();
  }
  if (request.repository_name().empty()) return request.model_name();
  return MakeError(StatusCode::kNotFound, "there is no repository ", QuotedName(request.repository_name()),
                   "; none has a name");
}

// Takes what files hold out of the parameters.
StatusOr<LoadOrder> OrderOf(const std::string& model, Parameters& parameters, bool may_override) {
  constexpr std::string_view kFile = "file:";
  LoadOrder order{.model = model};
  BroughtFiles files;
  for (auto& [key, value] : parameters) {
    const bool is_file = key.starts_with(kFile);
    if (!is_file && key != "config") {
      return InvalidArgument("there is no parameter ", QuotedName(key), "; known are 'config' and 'file:PATH'");
    }
    if (!may_override) {
      return MakeError(StatusCode::kPermissionDenied, "parameter ", QuotedName(key),
                       " is taken where the server was started with --allow-load-overrides");
    }
    if (!is_file) {
      if (std::ssize(value.string_param()) > kMostOrderBytes) {
        return MakeError(StatusCode::kResourceExhausted, "parameter 'config' has more than ", kMostOrderBytes,
                         " bytes");
      }
      SWIZZLE_ASSIGN_OR_RETURN(order.config, ParseModelConfigJson(value.string_param(), model));
      continue;
    }
    if (value.parameter_choice_case() != inference::ModelRepositoryParameter::kBytesParam) {
      return InvalidArgument("parameter ", QuotedName(key), " is bytes: what the file holds");
    }
    std::string path = key.substr(kFile.size());
    SWIZZLE_RETURN_IF_ERROR(CheckBroughtPath(path));
    files.push_back({std::move(path), std::move(*value.mutable_bytes_param())});
  }
  if (files.empty()) return order;
  if (!order.config) {
    return InvalidArgument(
        "parameter 'config' is missing: files stand for all of the model's folder, so give its "
        "configuration, too");
  }
  order.files = std::make_shared<const BroughtFiles>(std::move(files));
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
StatusOr<Request> ParseOrder(const ByteBuffer& bytes, int64_t most = kMostOrderBytes) {
  Request request;
  SWIZZLE_RETURN_IF_ERROR(Parse(ReceivedMessage(bytes), most, Request::descriptor()->name(), request));
  return request;
}

// Ends the call once an order is carried out. gRPC keeps `response` until then.
template <typename Response>
ModelRepository::Done Answer(grpc::ServerUnaryReactor* reactor, ByteBuffer* response, const Response& message,
                             std::shared_ptr<HeldBytes> held = nullptr) {
  return [reactor, response, bytes = Serialize(message), held = std::move(held)](const Status& status) mutable {
    if (status.ok()) response->Swap(&bytes);
    held.reset();  // the service may go once the call has ended
    reactor->Finish(ToGrpc(status));
  };
}

grpc::Status NoInference() {
  return {grpc::StatusCode::PERMISSION_DENIED,
          "this address is for operators; infer at the one that --grpc-address says"};
}

}  // namespace

RpcLimits ControlLimits(const RpcLimits& of_others, bool may_override) {
  constexpr int64_t kTransportBytes = int64_t{16} << 20;
  constexpr int kConnections = 64, kStreams = 16;
  RpcLimits limits = of_others;
  if (!may_override) {
    limits.max_message_bytes = kMostOrderBytes;
    limits.transport_bytes = std::min(limits.transport_bytes, kTransportBytes);
  }
  limits.max_connections = std::min(limits.max_connections, kConnections);
  limits.max_streams = std::min(limits.max_streams, kStreams);
  return limits;
}

StatusOr<ModelRepository*> ControlService::Repository() const {
  ModelRepository* const repository = repository_.load(std::memory_order_acquire);
  if (repository == nullptr) return MakeError(StatusCode::kUnavailable, "the server is loading its models");
  return repository;
}

int64_t ControlService::most_load_bytes() const {
  return may_override_ ? inference_.calls().limits.max_message_bytes : kMostOrderBytes;
}

StatusOr<std::shared_ptr<HeldBytes>> ControlService::Hold(int64_t bytes, int64_t memory) {
  if (bytes <= kMostOrderBytes) return nullptr;
  auto held = std::make_shared<HeldBytes>();
  InferCalls& calls = inference_.calls();
  if (held->Hold(calls.inflight, memory, calls.limits.max_inflight_bytes)) return held;
  return MakeError(StatusCode::kResourceExhausted, "the server has no room for an order of ", bytes,
                   " bytes now; try again later, or raise --max-inflight-bytes");
}

ControlService::Unary* ControlService::ModelInfer(Context* context, const Bytes*, Bytes*) {
  Unary* const reactor = context->DefaultReactor();
  reactor->Finish(NoInference());
  return reactor;
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ControlService::ModelStreamInfer(Context*) {
  return new FailedStream<>(NoInference());
}

Status ControlService::Load(std::string_view shown, inference::RepositoryModelLoadRequest& request,
                            ModelRepository::Done done) const {
  SWIZZLE_ASSIGN_OR_RETURN(ModelRepository* const repository, Repository());
  SWIZZLE_ASSIGN_OR_RETURN(const std::string model, NameIn(request));
  SWIZZLE_RETURN_IF_ERROR(inference_.CheckModel(shown, model));
  SWIZZLE_ASSIGN_OR_RETURN(LoadOrder order, OrderOf(model, *request.mutable_parameters(), may_override_));
  repository->LoadModel(std::move(order), std::move(done));
  return absl::OkStatus();
}

Status ControlService::Unload(std::string_view shown, const inference::RepositoryModelUnloadRequest& request,
                              ModelRepository::Done done) const {
  SWIZZLE_ASSIGN_OR_RETURN(ModelRepository* const repository, Repository());
  SWIZZLE_ASSIGN_OR_RETURN(const std::string model, NameIn(request));
  SWIZZLE_RETURN_IF_ERROR(inference_.CheckModel(shown, model));
  SWIZZLE_ASSIGN_OR_RETURN(const bool with_dependents, WithDependents(request.parameters()));
  repository->UnloadModel(model, with_dependents, std::move(done));
  return absl::OkStatus();
}

ControlService::Unary* ControlService::RepositoryModelLoad(Context* context, const Bytes* bytes, Bytes* response) {
  Unary* const reactor = context->DefaultReactor();
  const Status status = Contain("take the order", [&]() -> Status {
    // Its message, and the files that are taken out of it.
    const auto size = static_cast<int64_t>(bytes->Length());
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<HeldBytes> held, Hold(size, 2 * size));
    SWIZZLE_ASSIGN_OR_RETURN(auto request,
                             ParseOrder<inference::RepositoryModelLoadRequest>(*bytes, most_load_bytes()));
    inference::RepositoryModelLoadResponse message;
    if (request.model_name().empty()) {  // KServe's
      message.set_model_name(request.repository_name());
      message.set_is_loaded(true);
    }
    return Load(ShownBy(*context), request, Answer(reactor, response, message, std::move(held)));
  });
  if (!status.ok()) reactor->Finish(ToGrpc(status));
  return reactor;
}

ControlService::Unary* ControlService::RepositoryModelUnload(Context* context, const Bytes* bytes, Bytes* response) {
  Unary* const reactor = context->DefaultReactor();
  const Status status = Contain("take the order", [&]() -> Status {
    SWIZZLE_ASSIGN_OR_RETURN(const auto request, ParseOrder<inference::RepositoryModelUnloadRequest>(*bytes));
    inference::RepositoryModelUnloadResponse message;
    if (request.model_name().empty()) {  // KServe's
      message.set_model_name(request.repository_name());
      message.set_is_unloaded(true);
    }
    return Unload(ShownBy(*context), request, Answer(reactor, response, message));
  });
  if (!status.ok()) reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace swizzle
