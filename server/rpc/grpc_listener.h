// gRPC's server for services of ours, within limits: connections are accepted here and handed to it, messages are left
// as they come, and channel arguments bound the rest.
#ifndef SWIZZLE_SERVER_RPC_GRPC_LISTENER_H_
#define SWIZZLE_SERVER_RPC_GRPC_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "server/net/connection_acceptor.h"
#include "server/rpc/admission.h"
#include "server/rpc/rpc_limits.h"
#include "server/security/tls_certificates.h"

namespace swizzle {

// A connection's other end as its acceptor calls it, by gRPC's name, which escapes brackets.
std::string AcceptedPeer(std::string peer);

// Who may connect, and who may call. What it names outlives the listener.
struct Doorkeeper {
  const TlsCertificates* certificates = nullptr;  // null: no TLS
  Admission admission = {};
};

// Thread-compatible.
class GrpcListener {
 public:
  using OnClosed = std::function<void(const ConnectionAcceptor::Closed&)>;

  // Listens on `address`, and calls `services`, which outlive this, for who is admitted. `limits`: settled. `closed`,
  // which may be null, hears of each connection that is closed, on the acceptor's thread. UNAVAILABLE, naming the
  // address, if it cannot be had.
  static StatusOr<std::unique_ptr<GrpcListener>> Start(const std::string& address, const RpcLimits& limits,
                                                       const std::vector<ServedService>& services,
                                                       OnClosed closed = nullptr, const Doorkeeper& doorkeeper = {});
  ~GrpcListener();  // shuts down at once

  int port() const { return port_; }
  ConnectionAcceptor::Counts connections() const { return acceptor_->counts(); }
  // Ends a connection, by its other end as gRPC calls it. False if it was ended before.
  bool EndConnection(const std::string& peer);
  // What has come on it, and on all that there are now.
  ConnectionAcceptor::Traffic TrafficOf(const std::string& peer) const;
  ConnectionAcceptor::Activity activity() const { return acceptor_->activity(); }
  bool AwaitConnection() const { return acceptor_->AwaitConnection(); }
  // When a connection was accepted, by its other end as gRPC calls it; nothing where there is none.
  std::optional<Instant> Accepted(const std::string& peer) const;
  bool accepting() const { return acceptor_->accepting(); }

  grpc::Server& server() { return *server_; }

  // No new connections from now on.
  void StopAccepting() { acceptor_->Stop(); }
  int64_t open_connections() const { return acceptor_->CountOpen(); }
  // Ends connections in order. Calls on them end UNAVAILABLE, where Shutdown would have them end CANCELLED.
  void EndConnections() { acceptor_->EndAll(); }

  // Accepts nothing more, tells clients so, waits up to `patience` for calls to end, and ends those that have not.
  void Shutdown(absl::Duration patience);

 private:
  GrpcListener() = default;

  int port_ = 0;
  bool shut_down_ = false;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // before the server, which asks them at each handshake
  std::vector<std::unique_ptr<grpc::Service>> admitted_;  // likewise
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> take_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;  // before the two that it calls
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_GRPC_LISTENER_H_
