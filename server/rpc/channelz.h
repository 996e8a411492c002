// gRPC's own books (channelz) of this process's servers, which it tells as JSON.
#ifndef SWIZZLE_SERVER_RPC_CHANNELZ_H_
#define SWIZZLE_SERVER_RPC_CHANNELZ_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"

namespace swizzle {

// Since the start, of a server, or streams of a connection.
struct ChannelzCalls {
  int64_t started = 0;
  int64_t succeeded = 0, failed = 0;  // of a stream: ended in order, or reset

  int64_t open() const { return started - succeeded - failed; }
};

struct ChannelzConnection {
  std::string peer;  // as gRPC calls the other end
  ChannelzCalls streams;
  int64_t messages_received = 0, messages_sent = 0;  // whole ones
};

// By channelz's JSON of a socket. What it does not say is 0, or empty.
ChannelzConnection ParseConnection(const std::string& json);

// Of all servers of this process. Thread-safe.
ChannelzCalls CountCalls();

// Goes through the connections of this process's servers, some at a time. Thread-compatible.
class ConnectionWalk {
 public:
  // Of each, gRPC's number and what channelz says of it, as JSON.
  using Look = absl::FunctionRef<void(int64_t connection, const std::string& json)>;

  // A few hundred connections from where it came to last; none where all together have `least` calls open, or fewer,
  // which is quickly known.
  void GoOn(int64_t least, Look look);

 private:
  std::map<int64_t, int64_t> next_;  // server -> where to go on among its connections
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CHANNELZ_H_
