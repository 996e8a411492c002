// The requests that an executor runs together, and what comes of them.
#ifndef SWIZZLE_SERVER_BATCHING_BATCH_H_
#define SWIZZLE_SERVER_BATCHING_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "server/batching/request_queue.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/telemetry/labels.h"

namespace swizzle {

// One executor's; its vectors are reused from batch to batch. Not thread-safe.
struct Batch {
  PendingList requests;
  Instant start;
  BatchReason reason = BatchReason::kIdle;
  int64_t rows = 0;              // of requests that were taken
  int64_t work = 0;              // of these rows (QueueLoad)
  absl::Duration busy;           // how long it ran
  BatchTimes times;              // the session's
  std::vector<Result> results;   // of requests, same order
  std::vector<BatchItem> items;  // of requests, same order, into results

  // Whether nothing more would have fitted.
  bool full() const { return reason == BatchReason::kFull || reason == BatchReason::kSingle; }

  // Empty results, items that show them, and rows. INVALID_ARGUMENT where a request's rows cannot be told apart.
  Status MakeItems(const ModelSpec& spec);

  // Once it has run, and once for each request: what its result says beside outputs, and, where it ran in parts, what
  // is there of it put together. INTERNAL where outputs of its parts differ in more than rows.
  Status FinishResult(size_t index, const ModelSpec& spec);
};

// Positions of the rows that were taken: their tokens, or everything of the request's first input but the channels,
// which are dimension 1.
int64_t PositionsOf(const Pending& pending);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCH_H_
