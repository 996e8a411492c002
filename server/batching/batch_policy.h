// When a batch is formed, and of what: pure functions of the queue (request_order.h) and the time.
//
// The policy is continuous batching: an idle executor takes what is queued at once, in the order of their turns, up to
// max_rows rows and max_tokens tokens. Only a configuration that asks for a delay makes it wait. What does not fit in
// the rest closes the batch. A batch is of one class, that of the first request but where this waits for its delay:
// others of its class overtake what is of another.
//
// Turns are start-time fair queueing (Goyal, Vin, Cheng: Start-time Fair Queuing, 1996): a request's turn is when it
// would begin if each connection had an equal share of the work, counted in work, so that one that sends much delays
// one that sends little by no more than a batch. Requests of one turn go by arrival (request_queue.h gives turns).
// Where the tokens of each row are known, a request with more than part_tokens is taken in parts of whole rows, whose
// turns follow each other, so that others come between, and which may be more than a batch takes. Other requests are
// never split.
//
// With priorities a queue has lanes: of each level what is in time, then what is late. A batch begins with the first
// lane that has something waiting, and what room is left goes to the others in their order. None starves: a lane that
// was passed over by kMostPassed batches in a row begins the next, the one that was passed most often where there are
// several. So a lane takes part in one of kMostPassed + lanes batches at least, and what waits in it waits at most so
// many times as long as if it were alone.
#ifndef SWIZZLE_SERVER_BATCHING_BATCH_POLICY_H_
#define SWIZZLE_SERVER_BATCHING_BATCH_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "server/batching/request_order.h"
#include "server/model/model.h"
#include "server/telemetry/labels.h"

namespace swizzle {

struct Limits {
  int64_t max_rows = 0;                             // of one batch; 0: a batch is one request
  absl::Duration max_delay = absl::ZeroDuration();  // how long the oldest request may be kept waiting for others
  std::vector<int64_t> preferred_rows = {};         // with max_delay: batch sizes not worth a longer wait
  int64_t max_tokens = 0;                           // of one batch, but for a single row; 0: no limit
  int64_t part_tokens = 0;                          // of a part, likewise; 0: requests are taken whole
  size_t hold_until = 0;                            // for tests: take nothing while fewer requests are queued
  size_t lanes = 1;                                 // 1: neither levels nor lateness count
};

// Whether a batch may take some of a request's rows, and leave the others for later ones.
bool IsTakenInParts(const Limits& limits, const Queued& request);

// Of a lane, in a row.
inline constexpr int kMostPassed = 9;

// The limits that a model's specification asks for.
Limits LimitsOf(const ModelSpec& spec);

struct Decision {
  std::vector<uint64_t> take = {};           // tickets of what leaves the queue and runs now, ascending, ...
  std::vector<int64_t> rows = {};            // ... of each so many rows, the first ones
  std::vector<int> passed = {};              // where any do: by lane, for the next decision; empty: there is one lane
  BatchReason reason = BatchReason::kIdle;   // where any do
  Instant wake = Instant::InfiniteFuture();  // when the next deadline comes; where none run, also decide again then
};

// `queue` holds nothing that has expired, and knows who is late (RequestOrder::MoveLate); its lanes are those of
// `limits`, and it keeps the oldest where there is a delay. Each request that is taken whole is within the limits.
// `passed`: by lane, how many batches in a row took nothing of it while something waited there; the last Decision's
// that took something, at first empty. What it costs goes by what is taken, but where a delay makes it look at each
// class.
Decision Decide(const RequestOrder& queue, Instant now, const Limits& limits, std::span<const int> passed = {});

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCH_POLICY_H_
