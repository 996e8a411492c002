// What the policy decides on requests that are queued in the order in which they are given.
#ifndef SWIZZLE_TESTS_SERVER_BATCHING_DECIDED_H_
#define SWIZZLE_TESTS_SERVER_BATCHING_DECIDED_H_

#include <algorithm>
#include <span>
#include <vector>

#include "server/batching/batch_policy.h"

namespace swizzle {

struct Decided {
  std::vector<size_t> expired;  // indices into the queue, ascending
  std::vector<size_t> take;     // indices into what is left of it
  std::vector<int64_t> rows;    // and so on: as Decision
  std::vector<int> passed;
  BatchReason reason;
  Instant wake;
};

inline Decided DecideOn(std::vector<Queued> queue, Instant now, const Limits& limits,
                        std::span<const int> passed = {}) {
  RequestOrder order(limits.lanes, limits.max_delay > absl::ZeroDuration());
  for (size_t i = 0; i < queue.size(); ++i) {
    queue[i].ticket = i;
    order.Add(queue[i]);
  }
  Decided decided;
  while (const Queued* const expired = order.Expired(now)) {
    decided.expired.push_back(expired->ticket);
    order.Remove(*expired);
  }
  std::ranges::sort(decided.expired);
  order.MoveLate(now);
  Decision decision = Decide(order, now, limits, passed);
  for (const size_t taken : decision.take) {
    const auto gone = std::ranges::lower_bound(decided.expired, taken) - decided.expired.begin();
    decided.take.push_back(taken - static_cast<size_t>(gone));
  }
  decided.rows = std::move(decision.rows);
  decided.passed = std::move(decision.passed);
  decided.reason = decision.reason;
  decided.wake = decision.wake;
  return decided;
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_BATCHING_DECIDED_H_
