// The streams of inference and of reflection that are open, so that they end in order before somebody ends them
// otherwise: at a shutdown, and before gRPC closes a connection for its age.
#ifndef SWIZZLE_SERVER_RPC_INFER_STREAMS_H_
#define SWIZZLE_SERVER_RPC_INFER_STREAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/rpc/rpc_limits.h"

namespace swizzle {

// Thread-safe. Outlives its streams.
class InferStreams {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Reads no further request; ends with `why` once those that were read are answered. Perhaps called more than once.
    virtual void EndInOrder(const Status& why) = 0;
  };

  // From now on until Remove. UNAVAILABLE after EndAll. `peer`: the connection's other end, as gRPC calls it.
  Status Add(Stream& stream, std::string peer, Instant now);
  void Remove(Stream& stream);  // where it was added

  // Ends all, now and from now on, for a shutdown.
  void EndAll();

  // gRPC asks a client to leave a connection at its age, a tenth more or less, and closes it some time later, with
  // whatever is open. A stream is ended when that age may have come, but lasts for half of the time between, so that it
  // can be opened again. To be called again and again; `accepted` says when the connection with a peer was, nothing
  // where it is not known.
  void EndAged(const RpcLimits& limits, Instant now,
               absl::FunctionRef<std::optional<Instant>(const std::string& peer)> accepted);

 private:
  struct Open {
    std::string peer;
    Instant begun;
    std::optional<Instant> end;  // nothing: it was not looked at yet
  };

  Mutex mutex_;
  std::unordered_map<Stream*, Open> open_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFER_STREAMS_H_
