// Ends calls whose clients do not read their responses: gRPC would hold a response for as long as the connection lives.
#ifndef SWIZZLE_SERVER_RPC_RESPONSE_WATCH_H_
#define SWIZZLE_SERVER_RPC_RESPONSE_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/threading/clock.h"

namespace swizzle {

// Thread-safe. Outlives what it watches.
class ResponseWatch {
 public:
  // One response on its way, part of the call that it answers.
  class Response {
   public:
    Response() = default;
    Response(const Response&) = delete;
    Response& operator=(const Response&) = delete;

    // Whether its time was up: `end` runs, perhaps on this thread, or has run.
    bool ending() const { return ending_.load(std::memory_order_acquire); }

   private:
    friend class ResponseWatch;
    Response *before_ = nullptr, *after_ = nullptr;
    ResponseWatch* watch_ = nullptr;
    Instant deadline_;
    std::function<void()> end_;
    std::atomic<bool> ending_ = false;
  };

  ResponseWatch(absl::Duration timeout, Clock& clock) : timeout_(timeout), clock_(clock) {}

  // Calls `end`, under a lock and once, if EndLate finds the response still on its way after the time.
  void Start(Response& response, std::function<void()> end);
  // The response has gone, or its call has ended: `end` runs no more.
  void Stop(Response& response);

  // To be called again and again.
  void EndLate();
  int64_t ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  void Remove(Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration timeout_;
  Clock& clock_;
  Mutex mutex_;
  Response* oldest_ ABSL_GUARDED_BY(mutex_) = nullptr;  // whose time is up first
  Response* newest_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<int64_t> ended_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_RESPONSE_WATCH_H_
