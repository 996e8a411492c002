#include "server/rpc/grpc_listener.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "server/rpc/tls_credentials.h"

namespace swizzle {
namespace {

// What a client may send before the server has asked for it, and in one frame of HTTP/2. With gRPC's own 64 and 16 KiB
// an image of 602 KB waits for a round trip, and comes in 37 pieces: a sixth of what the server spends on the call.
// Frames of a MiB are no faster (p50 of such images 498-648 us beside 490-775), and leave larger holes in the heap.
constexpr int kLookaheadBytes = 4 << 20;
constexpr int kMaxFrameBytes = 256 << 10;

// gRPC takes the largest number for "never".
int Milliseconds(absl::Duration time) {
  if (time <= absl::ZeroDuration()) return std::numeric_limits<int>::max();
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(time), std::numeric_limits<int>::max()));
}

int AtMostInt(int64_t value) { return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max())); }

void SetLimits(const RpcLimits& limits, grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("swizzle");
  quota.Resize(static_cast<size_t>(limits.transport_bytes));
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(AtMostInt(limits.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);  // responses are counted before they are made
  // Messages are decompressed where their size can be watched (received_message.h).
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.max_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(limits.connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(limits.connection_grace));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(limits.connection_idle));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(limits.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(limits.keepalive_time));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(limits.keepalive_timeout));
  // By which newer versions of gRPC go, and by default wait for a minute.
  builder.AddChannelArgument("grpc.http2.ping_timeout_ms", Milliseconds(limits.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(limits.min_ping_interval));
}

}  // namespace

std::string AcceptedPeer(std::string peer) {
  for (const auto& [escaped, plain] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = peer.find(escaped); at != std::string::npos) peer.replace(at, 3, plain);
  }
  return peer;
}

StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Start(const std::string& address, const RpcLimits& limits,
                                                            const std::vector<ServedService>& services, OnClosed closed,
                                                            const Doorkeeper& doorkeeper) {
  StatusOr<ListeningSocket> socket = Listen(address);
  if (!socket.ok()) return Annotate(socket.status(), "gRPC");
  grpc::ServerBuilder builder;
  SetLimits(limits, builder);
  std::unique_ptr<GrpcListener> listener(new GrpcListener);
  for (const ServedService& served : services) {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<grpc::Service> admitted, NewAdmittedService(served, doorkeeper.admission));
    builder.RegisterService(listener->admitted_.emplace_back(std::move(admitted)).get());
  }
  listener->credentials_ = NewServerCredentials(doorkeeper.certificates);
  listener->take_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, listener->credentials_);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr) return MakeError(StatusCode::kUnavailable, "gRPC cannot serve on ", address);
  auto* const take = listener->take_.get();
  const int listening = socket->descriptor.get();
  listener->port_ = socket->port;
  const auto hand_over = [take, listening](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listening;
    connection.fd = fd;
    take->HandleNewConnection(&connection);
  };
  listener->acceptor_ =
      std::make_unique<ConnectionAcceptor>(*std::move(socket), limits.max_connections, hand_over, std::move(closed));
  return listener;
}

GrpcListener::~GrpcListener() {
  if (acceptor_ != nullptr) Shutdown(absl::ZeroDuration());
}

bool GrpcListener::EndConnection(const std::string& peer) { return acceptor_->End(AcceptedPeer(peer)); }

ConnectionAcceptor::Traffic GrpcListener::TrafficOf(const std::string& peer) const {
  return acceptor_->TrafficOf(AcceptedPeer(peer));
}

std::optional<Instant> GrpcListener::Accepted(const std::string& peer) const {
  return acceptor_->Accepted(AcceptedPeer(peer));
}

void GrpcListener::Shutdown(absl::Duration patience) {
  if (std::exchange(shut_down_, true)) return;
  acceptor_->Stop();
  server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                 gpr_time_from_millis(absl::ToInt64Milliseconds(patience), GPR_TIMESPAN)));
  server_->Wait();
}

}  // namespace swizzle
