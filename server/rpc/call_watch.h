// Whether gRPC's threads take calls up. The process may be all there while they don't: liveness then has to say no, so
// that somebody restarts it.
//
// Asks a service of its own, over no connection, again and again, and counts the time: what has to notice that gRPC
// lacks threads needs none of gRPC's. Calls of clients and their metrics see nothing of it. Thread-safe.
#ifndef SWIZZLE_SERVER_RPC_CALL_WATCH_H_
#define SWIZZLE_SERVER_RPC_CALL_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/rpc/health.h"
#include "server/threading/clock.h"

namespace swizzle {

class CallWatch {
 public:
  explicit CallWatch(Clock& clock = Clock::Real());
  ~CallWatch();

  // Asks, unless it did just now or waits for an answer. Does not wait; to be called again and again.
  void Look();

  // False once a call has had no answer for kMostSilence; true again when it has got one.
  bool answered() const;

  static constexpr absl::Duration kMostSilence = absl::Seconds(15);

 private:
  struct Call;

  Clock& clock_;
  HealthService service_;
  const std::unique_ptr<grpc::Server> server_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  mutable Mutex mutex_;
  std::shared_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);  // the last; gRPC may keep it longer
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CALL_WATCH_H_
