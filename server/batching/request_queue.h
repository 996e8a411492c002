// Requests that wait, with the turns that the batch policy goes by, and in the orders that it reads. Owns what it
// holds. Not thread-safe. A call that throws, for want of memory, has changed nothing.
//
// A flow is what came on one connection of one level, its short requests and its long ones apart: a proxy, or a
// program, may send a bulk job and queries on one connection. A request's turn is the queue's, which is that of what
// was taken last, or behind the work of its flow that waits, if that is later.
#ifndef SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_
#define SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/base/instant.h"
#include "server/batching/admission.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batcher.h"
#include "server/batching/request_order.h"
#include "server/model/request.h"

namespace swizzle {

// A request from Submit until its end.
struct Pending {
  Ticket ticket = 0;
  Request request;
  Done done;
  Instant arrival;
  Instant own_deadline;  // of who sent it; the request's may come sooner, while no row of it was taken
  Queued waiting = {};   // while it is queued

  // Set when rows of it are taken. Of its rows `rows_before` were taken before these.
  int64_t turn = 0;
  int64_t rows_before = 0, rows_taken = 0;
  int64_t work_taken = 0, work_left = 0;  // of the rows that were taken, and of those after them
  std::vector<TensorView> part = {};      // inputs of the rows, where they are not all
  Result so_far = {};                     // of the rows before
  bool cancelled = false;                 // while it ran

  bool is_whole() const { return rows_taken == request.rows; }
  int64_t rows_left() const { return request.rows - rows_before - rows_taken; }
};
using PendingList = std::vector<std::unique_ptr<Pending>>;

// What the policy and the bounds of the queue need to know of it.
Queued SummaryOf(const Pending& pending);

class RequestQueue {
 public:
  // `limits` say which requests are long ones: those that may be taken in parts.
  explicit RequestQueue(const Limits& limits = {})
      : limits_(limits), order_(limits.lanes, limits.max_delay > absl::ZeroDuration()) {}

  size_t size() const { return requests_.size(); }
  using Requests = absl::flat_hash_map<Ticket, std::unique_ptr<Pending>>;
  const Requests& requests() const { return requests_; }
  const RequestOrder& order() const { return order_; }
  const QueueLoad& load() const { return load_; }  // of all together
  // Of one level of priority, and of it and those above it.
  QueueLoad LoadAt(int level) const;
  QueueLoad LoadUpTo(int level) const;
  // Likewise, of those that came on a connection; of 0 nothing.
  QueueLoad LoadOf(uint64_t connection, int level) const;

  // Of what waits the work whose turn comes before that of a request, had it been pushed now.
  int64_t WorkBefore(const Queued& request) const;

  // REQUIRES: a ticket above all that were pushed before. `pending` is left alone if this throws.
  void Push(std::unique_ptr<Pending>& pending);
  // One that was taken, with the rows that are left: to its place, and its turn among the others.
  void Return(std::unique_ptr<Pending>& pending);
  // What was taken with rows left does not come back.
  void Lose(const Pending& pending);

  // Those with these tickets leave and are appended to `out`, to run with so many of the rows that are left, the first
  // ones.
  void Take(std::span<const uint64_t> tickets, std::span<const int64_t> rows, PendingList& out);

  // Those whose deadline has come leave and are appended to `expired`, even where this throws, and what is late goes
  // behind others.
  void PassTime(Instant now, PendingList& expired);

  // Null if no such request is queued; ends it.
  std::unique_ptr<Pending> TakeTicket(Ticket ticket);

 private:
  struct Flow {
    QueueLoad load;
    int64_t out = 0;  // requests that were taken with rows left, and may come back
    int64_t end = 0;  // of the turns of its requests, those that are out among them
  };
  using FlowKey = std::tuple<uint64_t, int, bool>;  // connection, level, whether they are long

  FlowKey FlowOf(const Queued& summary) const;
  FlowKey FlowAsTaken(const Pending& pending) const;  // the one that it was in when rows of it were taken
  void Insert(const Queued& summary, std::unique_ptr<Pending>& pending);
  std::unique_ptr<Pending> TakeOut(Ticket ticket, bool comes_back);
  void DropIfIdle(const FlowKey& key);

  const Limits limits_;
  int64_t turn_ = 0;
  QueueLoad load_;
  std::vector<QueueLoad> levels_;             // [level - 1], as far as there were any
  absl::flat_hash_map<FlowKey, Flow> flows_;  // of those with requests here, or out
  Requests requests_;
  RequestOrder order_;  // of them
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_REQUEST_QUEUE_H_
