// The queue of one model version: takes requests, forms batches for executors, and ends each request exactly once.
//
// Executors ask for batches themselves (NextBatch), so that a request changes threads once, and not at all where to
// wake one takes longer than the batch (Submit). Once nothing is queued they give their threads back. Decide (in
// batch_policy.h) is the pure function that says what to do with the queue; the Batcher only carries it out.
// Thread-safe; destroyed only after every call has returned. Metrics of a request are recorded before its `done` runs.
#ifndef SWIZZLE_SERVER_BATCHING_BATCHER_H_
#define SWIZZLE_SERVER_BATCHING_BATCHER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "server/batching/executor_threads.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/telemetry/metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

// Called exactly once for a submitted request, on an arbitrary thread (also from within Cancel), without locks held;
// must not block.
using Done = absl::AnyInvocable<void(StatusOr<Result>) &&>;
using Ticket = uint64_t;

class Batcher {
 public:
  virtual ~Batcher() = default;

  // What Submit would answer to the smallest request of this connection (Request's) with this deadline, of the first
  // level of priority, so that an overloaded model costs its requests no decoding. Counts as a refusal in the metrics.
  virtual Status CheckRoom(uint64_t connection, Instant deadline) const = 0;

  // Queues a request and returns its ticket. RESOURCE_EXHAUSTED when the queue is full, UNAVAILABLE when draining;
  // `done` then never runs. A deadline that passes while queued (the request's, or, until rows of it are taken, its
  // level's default timeout after Submit if that is earlier) ends in DEADLINE_EXCEEDED, or lets the request go behind
  // others where the level's policy says so. Where the only executor has nothing to do, its batches are short, and its
  // session says so (Session::RunsAtOnce), the calling thread runs what is queued itself, for a moment, and calls
  // `done` of those requests. REQUIRES: rows >= 1, and at most max_batch_size where that is not 0; a level that the
  // model has.
  virtual StatusOr<Ticket> Submit(Request request, Done done) = 0;

  // Ends a request that is still queued with CANCELLED, and one that runs in parts after the part that runs; another
  // that is running, or over, is left alone.
  virtual void Cancel(Ticket ticket) = 0;

  // No new requests; returns when everything queued and running has ended, `done` included. Meanwhile calls `progress`
  // whenever something has; it must not block. Safe to call more than once, but not from a `done`. The destructor
  // drains.
  virtual void Drain(absl::FunctionRef<void()> progress = [] {}) = 0;

  virtual int64_t queued() const = 0;
  // For tests: executors take nothing until `count` requests are queued, once.
  virtual void HoldUntilQueued(int64_t count) = 0;
};

// A session for each of `model.spec().executors()` executors. Fails if one does.
using Sessions = std::vector<std::unique_ptr<Session>>;
StatusOr<Sessions> NewSessions(Model& model, Clock& clock);

// Executors with these sessions take their threads from `threads`: null is some of its own. Fails if there are no
// threads. `clock`, which is the sessions', and `metrics` outlive the batcher; `metrics` may be null.
StatusOr<std::unique_ptr<Batcher>> NewBatcher(std::shared_ptr<Model> model, Sessions sessions, Clock& clock,
                                              ModelMetrics* metrics,
                                              std::shared_ptr<ExecutorThreads> threads = nullptr);
StatusOr<std::unique_ptr<Batcher>> NewBatcher(std::shared_ptr<Model> model, Clock& clock, ModelMetrics* metrics,
                                              std::shared_ptr<ExecutorThreads> threads = nullptr);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCHER_H_
