#include "server/batching/batch_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace swizzle {
namespace {

// The longest prefix of a class's requests that fits in one batch, and the longest whose rows are a preferred size.
struct Prefix {
  std::vector<size_t> requests;  // as Decision::take has them
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

// What has not expired of the queue, in order.
class LiveQueue {
 public:
  LiveQueue(std::span<const Queued> queue, std::span<const size_t> expired) : queue_(queue), expired_(expired) {}

  // Calls visit(place among the live, request) until it returns false.
  template <typename Visit>
  void ForEach(Visit visit) const {
    std::span<const size_t> expired = expired_;
    size_t place = 0;
    for (size_t i = 0; i < queue_.size(); ++i) {
      if (!expired.empty() && expired.front() == i) {
        expired = expired.subspan(1);
      } else if (!visit(place++, queue_[i])) {
        return;
      }
    }
  }

 private:
  std::span<const Queued> queue_;
  std::span<const size_t> expired_;
};

Prefix FittingPrefix(const LiveQueue& live, uint64_t batch_class, const Limits& limits) {
  Prefix prefix;
  live.ForEach([&](size_t place, const Queued& request) {
    if (request.batch_class != batch_class) return true;
    const bool fits = prefix.rows + request.rows <= limits.max_rows &&
                      (limits.max_tokens == 0 || prefix.tokens + request.tokens <= limits.max_tokens);
    if (!prefix.requests.empty() && !fits) {
      prefix.closed = true;
      return false;
    }
    prefix.requests.push_back(place);
    prefix.rows += request.rows;
    prefix.tokens += request.tokens;
    if (IsPreferred(limits, prefix.rows)) prefix.preferred = prefix.requests.size();
    prefix.closed = prefix.rows >= limits.max_rows || (limits.max_tokens > 0 && prefix.tokens >= limits.max_tokens);
    return !prefix.closed;
  });
  return prefix;
}

// The first request of each class, in order of arrival; where none waits for others, of the first class alone.
std::vector<Queued> OldestOfClasses(const LiveQueue& live, bool one_waits) {
  std::vector<Queued> oldest;
  live.ForEach([&](size_t, const Queued& request) {
    if (std::ranges::find(oldest, request.batch_class, &Queued::batch_class) == oldest.end()) oldest.push_back(request);
    return one_waits;
  });
  return oldest;
}

// Why requests of a class are to run now, and then no more of them than that; nothing while they are to wait.
std::optional<BatchReason> ReasonToRun(Prefix& prefix, const Limits& limits, Instant latest_start, Instant now) {
  if (prefix.closed) return BatchReason::kFull;
  if (limits.max_delay <= absl::ZeroDuration()) return BatchReason::kIdle;
  if (prefix.preferred > 0) {
    prefix.requests.resize(prefix.preferred);
    return BatchReason::kPreferred;
  }
  if (IsBeyondPreferred(limits, prefix.rows)) return BatchReason::kPreferred;
  return latest_start <= now ? std::optional(BatchReason::kDelay) : std::nullopt;
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
  const size_t count = queue.size() - decision.expired.size();
  if (count == 0 || count < limits.hold_until) return decision;
  if (limits.max_rows == 0) {
    decision.take = {0};
    decision.reason = BatchReason::kSingle;
    return decision;
  }
  const LiveQueue live(queue, decision.expired);
  for (const Queued& oldest : OldestOfClasses(live, limits.max_delay > absl::ZeroDuration())) {
    Prefix prefix = FittingPrefix(live, oldest.batch_class, limits);
    const Instant latest_start = oldest.arrival + limits.max_delay;
    if (const auto reason = ReasonToRun(prefix, limits, latest_start, now)) {
      decision.take = std::move(prefix.requests);
      decision.reason = *reason;
      return decision;
    }
    decision.wake = std::min(decision.wake, latest_start);
  }
  return decision;
}

}  // namespace swizzle
