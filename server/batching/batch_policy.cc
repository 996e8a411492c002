#include "server/batching/batch_policy.h"

#include <algorithm>
#include <utility>

namespace swizzle {
namespace {

// The longest prefix of the queue that fits in one batch, and the longest whose rows are a preferred size.
struct Prefix {
  size_t requests = 0;
  int64_t rows = 0;
  int64_t tokens = 0;
  bool closed = false;   // nothing that is queued, or may come, can join it
  size_t preferred = 0;  // requests; 0: no prefix has a preferred size
};

bool IsPreferred(const Limits& limits, int64_t rows) {
  return std::find(limits.preferred_rows.begin(), limits.preferred_rows.end(), rows) != limits.preferred_rows.end();
}

// However many rows come, they make no preferred batch of these.
bool IsBeyondPreferred(const Limits& limits, int64_t rows) {
  return !limits.preferred_rows.empty() && rows > *std::ranges::max_element(limits.preferred_rows);
}

// Calls visit(i) for the index of every request that has not expired, in order, until it returns false.
template <typename Visit>
void ForEachLive(size_t count, std::span<const size_t> expired, Visit visit) {
  for (size_t i = 0; i < count; ++i) {
    if (!expired.empty() && expired.front() == i) {
      expired = expired.subspan(1);
    } else if (!visit(i)) {
      return;
    }
  }
}

Prefix FittingPrefix(std::span<const Queued> queue, std::span<const size_t> expired, const Limits& limits) {
  Prefix prefix;
  ForEachLive(queue.size(), expired, [&](size_t i) {
    const bool fits = prefix.rows + queue[i].rows <= limits.max_rows &&
                      (limits.max_tokens == 0 || prefix.tokens + queue[i].tokens <= limits.max_tokens);
    if (prefix.requests > 0 && !fits) {
      prefix.closed = true;
      return false;
    }
    ++prefix.requests;
    prefix.rows += queue[i].rows;
    prefix.tokens += queue[i].tokens;
    if (IsPreferred(limits, prefix.rows)) prefix.preferred = prefix.requests;
    prefix.closed = prefix.rows >= limits.max_rows || (limits.max_tokens > 0 && prefix.tokens >= limits.max_tokens);
    return !prefix.closed;
  });
  return prefix;
}

Instant OldestArrival(std::span<const Queued> queue, std::span<const size_t> expired) {
  Instant oldest = Instant::InfiniteFuture();
  ForEachLive(queue.size(), expired, [&](size_t i) {
    oldest = queue[i].arrival;
    return false;
  });
  return oldest;
}

Decision Take(Decision decision, size_t requests, BatchReason reason) {
  decision.take = requests;
  decision.reason = reason;
  return decision;
}

}  // namespace

Limits LimitsOf(const ModelSpec& spec) {
  Limits limits;
  limits.max_rows = spec.dynamic_batching ? spec.max_batch_size : 0;
  limits.max_tokens = spec.max_batch_tokens;
  limits.max_delay = spec.max_queue_delay;
  limits.preferred_rows = spec.preferred_batch_sizes;
  return limits;
}

Expiry FindExpired(std::span<const Queued> queue, Instant now) {
  Expiry result;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue[i].deadline <= now) {
      result.expired.push_back(i);
    } else {
      result.next_deadline = std::min(result.next_deadline, queue[i].deadline);
    }
  }
  return result;
}

Decision Decide(std::span<const Queued> queue, Instant now, const Limits& limits) {
  Expiry expiry = FindExpired(queue, now);
  Decision decision{.expired = std::move(expiry.expired), .wake = expiry.next_deadline};
  const size_t live = queue.size() - decision.expired.size();
  if (live == 0 || live < limits.hold_until) return decision;
  if (limits.max_rows == 0) return Take(std::move(decision), 1, BatchReason::kSingle);

  const Prefix prefix = FittingPrefix(queue, decision.expired, limits);
  if (prefix.closed) return Take(std::move(decision), prefix.requests, BatchReason::kFull);
  if (limits.max_delay <= absl::ZeroDuration()) return Take(std::move(decision), prefix.requests, BatchReason::kIdle);
  if (prefix.preferred > 0) return Take(std::move(decision), prefix.preferred, BatchReason::kPreferred);
  if (IsBeyondPreferred(limits, prefix.rows))
    return Take(std::move(decision), prefix.requests, BatchReason::kPreferred);

  const Instant latest_start = OldestArrival(queue, decision.expired) + limits.max_delay;
  if (latest_start <= now) return Take(std::move(decision), prefix.requests, BatchReason::kDelay);
  decision.wake = std::min(decision.wake, latest_start);
  return decision;
}

}  // namespace swizzle
