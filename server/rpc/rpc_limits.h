// What clients may ask of the server: sizes, numbers and times, from the command line. Value type.
#ifndef SWIZZLE_SERVER_RPC_RPC_LIMITS_H_
#define SWIZZLE_SERVER_RPC_RPC_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace swizzle {

// gRPC counts a message's bytes in 31 bits, and protobuf aborts beyond them; the rest of a response is small.
inline constexpr int64_t kMostResponseBytes = (int64_t{1} << 31) - (1 << 20);

struct RpcLimits {
  // Of one call.
  int64_t max_message_bytes = 64 << 20;  // of a request: as sent, decompressed, and parsed
  int64_t max_response_bytes = 1 << 30;
  int max_metadata_bytes = 16 << 10;
  absl::Duration max_deadline = absl::Minutes(10);      // of calls that have none, too
  absl::Duration request_timeout = absl::Minutes(2);    // without a whole request, while one comes; then it is closed
  absl::Duration response_timeout = absl::Seconds(60);  // until a response is sent; the call ends then

  // Of all calls. 0: by the memory that there is.
  int64_t max_inflight_bytes = 0;             // that requests and responses hold
  int64_t max_model_inflight_bytes = 0;       // likewise, of one model; 0: three quarters of all
  int64_t max_connection_inflight_bytes = 0;  // likewise, of one connection; 0: half of a model's
  int64_t transport_bytes = 0;                // that gRPC holds of what arrives

  // Of shared memory.
  std::string shared_memory_prefix = {};           // of names that may be registered; empty: none
  bool shares_device_memory = false;               // of GPUs
  int64_t shared_memory_bytes = int64_t{1} << 30;  // of all regions

  // Of connections.
  int max_connections = 0;                               // 0: by the file descriptors that there are
  int max_streams = 1024;                                // on one
  int max_stream_requests = 64;                          // of one stream, that are not answered yet
  absl::Duration connection_age = absl::Minutes(30);     // a tenth more or less; zero: any
  absl::Duration connection_grace = absl::Minutes(2);    // for calls on a connection that is of age
  absl::Duration connection_idle = absl::Minutes(15);    // zero: any
  absl::Duration keepalive_time = absl::Minutes(1);      // of silence, until the server pings; zero: never
  absl::Duration keepalive_timeout = absl::Seconds(20);  // for the answer
  absl::Duration handshake_timeout = absl::Seconds(10);
  absl::Duration min_ping_interval = absl::Seconds(10);  // of clients
};

// With amounts in the place of zeros: an eighth of `memory` each for what requests hold and for what gRPC does, and
// connections for most of `files`, the descriptors that there may be, and for no more than those.
RpcLimits Settle(RpcLimits limits, int64_t memory, int64_t files);

// What may come on a connection without a whole message: a third of what gRPC may hold, or a message and a little. With
// half, who connects again at once has more than all of it before gRPC has let go of the connection before.
int64_t UnfinishedBytes(const RpcLimits& settled);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_RPC_LIMITS_H_
