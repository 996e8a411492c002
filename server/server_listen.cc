// Where a server listens beside gRPC's own address, and what there is to tell of all who connect.
#include "server/rpc/call_load.h"
#include "server/rpc/channelz.h"
#include "server/server.h"
#include "server/telemetry/logging.h"

namespace swizzle {

Status Server::ListenForHttp(const std::string& address, const RpcLimits& limits) {
  rest_ = std::make_unique<RestService>(*service_);
  SWIZZLE_ASSIGN_OR_RETURN(http_, HttpServer::Start(address, HttpLimitsOf(limits), *rest_, certificates_.get()));
  Log(LogLevel::kInfo, "listening for HTTP", {{"http_port", http_->port()}});
  return absl::OkStatus();
}

Status Server::ListenForOrders(const ServerOptions& options, const RpcLimits& limits) {
  if (options.control_address.empty() && options.http_control_address.empty()) return absl::OkStatus();
  control_service_ = std::make_unique<ControlService>(*service_, options.allow_load_overrides);
  const RpcLimits its = ControlLimits(limits, options.allow_load_overrides);
  if (!options.control_address.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(
        control_, GrpcListener::Start(options.control_address, its, {control_service_.get(), &health_}, nullptr,
                                      {certificates_.get(), {authorization_.get(), ListenerKind::kControl}}));
    Log(LogLevel::kInfo, "listening for orders", {{"control_port", control_->port()}});
  }
  if (options.http_control_address.empty()) return absl::OkStatus();
  rest_control_ = std::make_unique<RestService>(*service_, *control_service_);
  HttpLimits of_http = HttpLimitsOf(its);
  of_http.threads = 1;
  SWIZZLE_ASSIGN_OR_RETURN(
      http_control_, HttpServer::Start(options.http_control_address, of_http, *rest_control_, certificates_.get()));
  Log(LogLevel::kInfo, "listening for orders by HTTP", {{"http_control_port", http_control_->port()}});
  return absl::OkStatus();
}

ClientLoad Server::LoadOfClients(const MemoryTrim& trim) const {
  const InferCalls& calls = service_->calls();
  const ConnectionAcceptor::Counts connections = grpc_->connections();
  const ConnectionAcceptor::Counts of_http = http_ == nullptr ? ConnectionAcceptor::Counts() : http_->connections();
  const ChannelzCalls of_grpc = CountCalls();
  const auto repository = calls.repository();
  const int64_t to_models = repository.ok() ? (*repository)->promised_bytes() : 0;
  const RunBytes runs = repository.ok() ? (*repository)->run_bytes() : RunBytes();
  const int64_t cache_limit = response_cache_ == nullptr ? 0 : response_cache_->limit();
  ConnectionEnds::Counts ended = connection_ends_->counts();
  if (http_ != nullptr) {
    ended[static_cast<size_t>(ConnectionEnd::kAge)] += http_->counts().ended_aged;
    ended[static_cast<size_t>(ConnectionEnd::kIdle)] += http_->counts().ended_idle;
  }
  const int64_t transport = calls.limits.transport_bytes * (http_ == nullptr ? 1 : 2);
  return {.calls = LoadOf(calls),
          .connections = connections.open + of_http.open,
          .connections_limit = calls.limits.max_connections * (http_ == nullptr ? 1 : 2),
          .accepted = connections.accepted + of_http.accepted,
          .refused_limit = connections.refused_limit + of_http.refused_limit,
          .refused_files = connections.refused_files + of_http.refused_files,
          .ended_greedy = connections.ended - slow_senders_ended_,
          .ended_slow = slow_senders_ended_ + (http_ == nullptr ? 0 : http_->counts().ended_slow),
          .connections_ended = ended,
          .grpc_calls = {of_grpc.started, of_grpc.succeeded, of_grpc.failed},
          .transport_bytes_limit = calls.limits.transport_bytes,
          .memory_limit = memory_limit_,
          .memory_promised = {to_models, calls.limits.max_inflight_bytes + transport + cache_limit},
          .run_bytes = runs.held,
          .run_bytes_limit = runs.limit,
          .response_cache_bytes = response_cache_ == nullptr ? 0 : response_cache_->bytes(),
          .response_cache_limit = cache_limit,
          .memory_trims = trim.trims(),
          .credentials = credential_watch_->load()};
}

}  // namespace swizzle
