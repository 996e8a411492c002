// Requests in order of arrival, beside the summaries that the batch policy reads. Owns what it holds. Not thread-safe.
// A call that throws, for want of memory, has changed nothing.
#ifndef SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_
#define SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/base/instant.h"
#include "server/batching/admission.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batcher.h"
#include "server/model/request.h"

namespace swizzle {

// A request from Submit until its end.
struct Pending {
  Ticket ticket = 0;
  Request request;
  Done done;
  Instant arrival;
};
using PendingList = std::vector<std::unique_ptr<Pending>>;

// What the policy and the bounds of the queue need to know of it.
Queued SummaryOf(const Pending& pending);

class RequestQueue {
 public:
  size_t size() const { return requests_.size(); }
  std::span<const Queued> summaries() const { return summaries_; }
  const QueueLoad& load() const { return load_; }  // of all together
  // Of one level of priority, and of it and those above it.
  QueueLoad LoadAt(int level) const;
  QueueLoad LoadUpTo(int level) const;
  // Likewise, of those that came on a connection; of 0 nothing.
  QueueLoad LoadOf(uint64_t connection, int level) const;

  // REQUIRES: a ticket above all that were pushed before. `pending` is left alone if this throws.
  void Push(std::unique_ptr<Pending>& pending);

  // Those at `indices`, ascending, leave and are appended to `out`.
  void Take(std::span<const size_t> indices, PendingList& out);

  // Null if no such request is queued.
  std::unique_ptr<Pending> TakeTicket(Ticket ticket);

 private:
  void Forget(const Queued& summary);

  QueueLoad load_;
  std::vector<QueueLoad> levels_;  // [level - 1], as far as there were any
  // By connection and level, of those with requests here.
  absl::flat_hash_map<std::pair<uint64_t, int>, QueueLoad> loads_;
  std::vector<Queued> summaries_;  // of requests_, same order
  PendingList requests_;           // tickets ascend
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_
