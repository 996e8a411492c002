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
  int64_t rows = 0;
  int64_t work = 0;              // see QueueLoad
  absl::Duration busy;           // how long it ran
  bool first_of_shape = false;   // see BatchTimes
  std::vector<Result> results;   // of requests, same order
  std::vector<BatchItem> items;  // of requests, same order, into results

  // Whether nothing more would have fitted.
  bool full() const { return reason == BatchReason::kFull || reason == BatchReason::kSingle; }

  // Empty results, items that show them, and rows.
  void MakeItems();
};

// Positions of one request: its tokens, or everything of its first input but the channels, which are dimension 1.
int64_t PositionsOf(const Request& request);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCH_H_
