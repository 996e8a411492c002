// Finds connections that take more than any client in order does, or for longer, so that they can be closed.
//
// gRPC 1.51 keeps to the limit of calls on a connection only once the client has acknowledged it: who never does may
// open streams until memory ends, leave answers unread, or cancel calls faster than they can be thrown away
// (CVE-2023-44487). gRPC's own books (channelz) say how many streams each connection has open.
#ifndef SWIZZLE_SERVER_RPC_GREEDY_CONNECTIONS_H_
#define SWIZZLE_SERVER_RPC_GREEDY_CONNECTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/net/connection_acceptor.h"
#include "server/rpc/channelz.h"
#include "server/rpc/connection_bytes.h"
#include "server/threading/clock.h"

namespace swizzle {

// Calls that their clients cancelled, by connection. Thread-safe.
class CancelledCalls {
 public:
  // `most`: of one connection, in a second.
  CancelledCalls(int64_t most, Clock& clock) : most_(most), clock_(clock) {}

  // `peer`: as gRPC calls a connection's other end.
  void Add(const std::string& peer);
  // Peers that cancelled more since this was asked last.
  std::vector<std::string> TakeGreedy();

 private:
  const int64_t most_;
  Clock& clock_;
  Mutex mutex_;
  Instant second_ ABSL_GUARDED_BY(mutex_);  // when the counting began
  std::map<std::string, int64_t> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> greedy_ ABSL_GUARDED_BY(mutex_);
};

// Calls that gRPC has not let go of yet, by connection. Of those that a client cancels, that may be for as long as it
// sends more: gRPC throws them away on the thread that reads the connection, once there is nothing to be read.
// Thread-safe.
class UnfinishedCalls {
 public:
  // `most`: of one connection.
  explicit UnfinishedCalls(int64_t most) : most_(most) {}

  void Begin(const std::string& peer);
  void End(const std::string& peer);
  // Peers that have come to have more since this was asked last.
  std::vector<std::string> TakeGreedy();

 private:
  const int64_t most_;
  Mutex mutex_;
  std::unordered_map<std::string, int64_t> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> greedy_ ABSL_GUARDED_BY(mutex_);
};

// Connections with too many streams open. Thread-compatible.
class OpenStreams {
 public:
  explicit OpenStreams(int64_t most) : most_(most) {}

  // Peers that have more streams open, of those looked at now. Quick where all connections together have no more.
  std::vector<std::string> FindGreedy();

 private:
  int64_t most_;
  ConnectionWalk walk_;
};

// What may come on a connection before a request is whole, while one is on its way. gRPC keeps all of it, and where it
// keeps too much, it ends the connections of others first.
struct UnfinishedLimits {
  absl::Duration time;
  int64_t bytes = 0;
  int64_t message = 0;  // bytes of the largest message that there may be
};

// Connections that begin requests and don't end them. Thread-compatible.
class SlowSenders {
 public:
  // Of a connection, by its other end.
  using TrafficOf = std::function<ConnectionAcceptor::Traffic(const std::string& peer)>;

  // `accounts` outlives it.
  SlowSenders(const UnfinishedLimits& limits, TrafficOf traffic_of, ConnectionBytes& accounts, Clock& clock)
      : limits_(limits), traffic_of_(std::move(traffic_of)), accounts_(accounts), clock_(clock) {}

  // Peers beyond a limit, of those looked at now; to be called again and again.
  std::vector<std::string> Find();
  // Whether Find() should be called before its usual time: a quarter of the bytes that a connection may send has come
  // since, by `received_bytes` of all connections. At a gigabyte a second that is sooner than any usual time.
  bool IsUrgent(int64_t received_bytes);
  // Likewise, one of channelz's sockets by its JSON; empty where it is within them.
  std::string Look(int64_t connection, const std::string& json);

 private:
  // What a connection had done when it was looked at last.
  struct Seen {
    ChannelzConnection its;
    ConnectionAcceptor::Traffic traffic;
    int64_t whole = 0;  // ConnectionAccount's
  };
  struct Progress {
    bool known = false;
    Seen seen;
    std::shared_ptr<ConnectionAccount> account;
    int64_t unfinished = 0;    // fewest streams without a message; cancelled ones are counted as such
    Instant since, looked_at;  // nothing has come whole; it was looked at
    int64_t bytes = 0;         // that had come when the counting of those that came without a message began
    Instant counted;           // that moment
    int64_t accounted = 0;     // of the bytes that have come, those that belong to no message that is not whole
  };

  int64_t Accountable(const Seen& before, const Seen& now) const;

  UnfinishedLimits limits_;
  TrafficOf traffic_of_;
  ConnectionBytes& accounts_;
  Clock& clock_;
  ConnectionWalk walk_;
  std::map<int64_t, Progress> progress_;  // by connection
  int64_t urgent_at_ = 0;                 // bytes on all connections
};

// The peer of one of channelz's sockets with more than `most` streams open, by its JSON; empty where it has fewer.
std::string GreedyPeer(const std::string& socket_json, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_GREEDY_CONNECTIONS_H_
