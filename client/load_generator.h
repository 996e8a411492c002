// Sends requests in a closed loop and measures them: as soon as one is answered, its place is taken by the next.
#ifndef SWIZZLE_CLIENT_LOAD_GENERATOR_H_
#define SWIZZLE_CLIENT_LOAD_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace swizzle::client {

struct LoadOptions {
  int concurrency = 1;                                 // requests in flight; each has a thread of its own
  int64_t requests = 0;                                // stop after as many; 0: no limit
  absl::Duration duration = absl::InfiniteDuration();  // start none after this long
  absl::Duration progress_interval = absl::Milliseconds(200);
};

// Both are called on the threads of the load, several at a time.
using RequestSource = std::function<InferRequest(int64_t index)>;
using ResultSink = std::function<void(int64_t index, const InferResult& result)>;
// Called on the caller's thread with the number of requests answered so far and the time since the first was sent.
using ProgressSink = std::function<void(int64_t answered, absl::Duration elapsed)>;

// What was measured, over the requests that succeeded.
struct LoadReport {
  int64_t succeeded = 0;
  absl::Duration elapsed;                 // first request sent to last answer
  std::vector<absl::Duration> latencies;  // client-side, ascending
  std::vector<absl::Duration> queues;     // as the server measured, ascending
  std::vector<absl::Duration> computes;   // ascending
  absl::Status first_error;               // why it ended early, if it did
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
