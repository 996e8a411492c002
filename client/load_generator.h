// Sends requests and measures them, in one of two ways:
//
//   closed loop  as soon as a request is answered, its place is taken by the next
//   open loop    requests are sent at a rate, whether or not those before are answered. A latency counts from when its
//                request was due, not from when it could be sent, so that a server that stalls shows in all requests
//                that it kept waiting (no coordinated omission)
//
// Requests are calls of the client's that need no thread each.
#ifndef SWIZZLE_CLIENT_LOAD_GENERATOR_H_
#define SWIZZLE_CLIENT_LOAD_GENERATOR_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace swizzle::client {

struct LoadOptions {
  int concurrency = 1;   // closed loop: requests in flight
  double rate = 0;       // requests a second of an open loop; 0: a closed loop
  bool poisson = false;  // open loop: gaps are drawn as of callers who know nothing of each other; else all are equal
  int max_in_flight = 1024;  // open loop: who is due beyond that waits, and its latency counts meanwhile
  int64_t requests = 0;      // stop after as many; 0: no limit
  absl::Duration duration = absl::InfiniteDuration();  // start none after this long
  absl::Duration progress_interval = absl::Milliseconds(200);
};

// Both are called on the client's threads, several at a time, and must not block.
using RequestSource = std::function<std::shared_ptr<const InferRequest>(int64_t index)>;
using ResultSink = std::function<void(int64_t index, const InferResult& result)>;
// Called on the caller's thread with the number of requests answered so far and the time since the first was sent.
using ProgressSink = std::function<void(int64_t answered, absl::Duration elapsed)>;

// What was measured; latencies, queues and computes are of the requests that succeeded.
struct LoadReport {
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t late = 0;                       // open loop: were sent more than a millisecond after they were due
  absl::Duration elapsed;                 // first request sent, or the last Take, to last answer, or this Take
  absl::Duration sending;                 // in all, until the client had taken the requests
  std::vector<absl::Duration> latencies;  // client-side, ascending
  std::vector<absl::Duration> queues;     // as the server measured, ascending
  std::vector<absl::Duration> computes;   // ascending
  absl::Status first_error;               // of those that failed
};

// A load that runs from when it is made until its limits are met, it is stopped, or a request fails; an open loop goes
// on where the server was too busy for one. Its methods are for one thread.
class Load {
 public:
  // REQUIRES: concurrency > 0 or rate > 0. The client outlives the load.
  Load(Client& client, const LoadOptions& options, RequestSource source, ResultSink sink);
  ~Load();

  // Whether the load is over; waits for that, but no longer than `most`.
  bool WaitFor(absl::Duration most);
  int64_t answered();
  absl::Duration elapsed() const;
  // What was measured since the last call.
  LoadReport Take();
  // Sends no more, and waits for the answers that are on their way.
  void Stop();

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Instant = SteadyClock::time_point;

  void StartClosed();
  void SendOpen();
  bool SleepUntil(Instant due);
  bool MayStart();  // REQUIRES: mutex_ is held, as of the next three
  bool IsOver() const;
  int64_t CountNext();
  void Record(absl::Duration latency, const absl::StatusOr<InferResult>& result);
  void Send(int64_t index, Instant due);
  void Answer(int64_t index, Instant due, const absl::StatusOr<InferResult>& result);

  Client& client_;
  const LoadOptions options_;
  const RequestSource source_;
  const ResultSink sink_;
  const Instant start_;

  std::mutex mutex_;                 // guards what follows; not Abseil's: ThreadSanitizer would not see it
  std::condition_variable changed_;  // fewer requests are in flight, or it is to stop
  int64_t next_ = 0, answered_ = 0;
  int in_flight_ = 0;
  int senders_ = 0;  // calls of Send that have not come back, though perhaps the answer has
  bool starting_ = true, stop_ = false;
  Instant taken_, last_answer_;
  LoadReport report_;
  std::thread sender_;  // of an open loop
};

// Runs until the limits are met or a request fails. REQUIRES: concurrency > 0, and a limit.
LoadReport RunLoad(Client& client, const LoadOptions& options, const RequestSource& source, const ResultSink& sink,
                   const ProgressSink& progress);

// The smallest value that at least `fraction` (0 to 1) of the values do not exceed; zero if there are none.
// REQUIRES: ascending.
absl::Duration Quantile(const std::vector<absl::Duration>& ascending, double fraction);

// Zero if there are none.
absl::Duration Mean(const std::vector<absl::Duration>& values);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_LOAD_GENERATOR_H_
