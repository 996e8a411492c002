// Counts the connections that we did not end, by the limit that they had reached.
//
// gRPC ends connections that are too old, idle or silent, and tells nobody. What it goes by can be seen from outside:
// when a connection was accepted, when anything came last, and, in gRPC's books, when it had its last call.
#ifndef SWIZZLE_SERVER_RPC_CONNECTION_ENDS_H_
#define SWIZZLE_SERVER_RPC_CONNECTION_ENDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/net/connection_acceptor.h"
#include "server/rpc/channelz.h"
#include "server/rpc/rpc_limits.h"
#include "server/telemetry/labels.h"
#include "server/threading/clock.h"

namespace swizzle {

// `without_call`: how long it had none. `in_books`: whether gRPC ever had it there, which it has once TLS has begun.
ConnectionEnd WhyEnded(const ConnectionAcceptor::Closed& closed, absl::Duration without_call, bool in_books,
                       const RpcLimits& limits);

// Thread-safe.
class ConnectionEnds {
 public:
  using Counts = std::array<int64_t, kLabelValues<ConnectionEnd>.size()>;

  // `clock` outlives this.
  ConnectionEnds(const RpcLimits& limits, Clock& clock) : limits_(limits), clock_(clock) {}

  // Looks once a second at calls of some connections; to be called more often.
  void Look();
  // Of each connection, once.
  void Add(const ConnectionAcceptor::Closed& closed);
  Counts counts() const;

 private:
  struct Calls {
    int64_t started = 0;
    Instant last;       // that one was open, or a new one was seen
    Instant looked_at;  // in vain, once gRPC has forgotten the connection
  };

  const RpcLimits limits_;
  Clock& clock_;
  mutable Mutex mutex_;
  Instant looked_ ABSL_GUARDED_BY(mutex_), pruned_ ABSL_GUARDED_BY(mutex_);
  ConnectionWalk walk_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Calls> calls_ ABSL_GUARDED_BY(mutex_);  // by the acceptor's name of a connection
  Counts counts_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CONNECTION_ENDS_H_
