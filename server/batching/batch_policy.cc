#include "server/batching/batch_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace swizzle {
namespace {

// The longest prefix of a class's requests that fits in one batch, and the longest whose rows are a preferred size.
struct Prefix {
  std::vector<size_t> requests;  // as Decision::take has them, but in the order of their turns
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

// Of each level what is in time, and behind it what is late.
size_t LaneOf(const Queued& request, Instant now) {
  return 2 * static_cast<size_t>(request.level - 1) + (request.late_at <= now ? 1 : 0);
}

// What has not expired of the queue, in the order in which its turn comes.
class LiveQueue {
 public:
  LiveQueue(std::span<const Queued> queue, std::span<const size_t> expired, size_t lanes)
      : queue_(queue), expired_(expired), lanes_(lanes) {}

  // Puts it in the order of lanes. Until then, and where there is one, that is the order of arrival.
  void SortByLanes(Instant now, std::span<const int> passed) {
    if (lanes_ == 1) return;
    passed_.assign(passed.begin(), passed.end());
    passed_.resize(lanes_);
    std::vector<bool> waiting(lanes_);
    ForEach([&](size_t place, const Queued& request) {
      turns_.push_back({LaneOf(request, now), place, &request});
      return waiting[turns_.back().lane] = true;
    });
    for (size_t lane = 0; lane < lanes_; ++lane) {
      if (!waiting[lane]) passed_[lane] = 0;
    }
    const size_t most = static_cast<size_t>(std::ranges::max_element(passed_) - passed_.begin());
    const size_t first = passed_[most] >= kMostPassed ? most : 0;
    std::ranges::stable_sort(turns_, {}, [&](const Turn& turn) { return turn.lane == first ? 0 : turn.lane + 1; });
  }

  // By lane, how often it was passed over when these places have been taken, ascending.
  std::vector<int> PassedAfter(std::span<const size_t> taken) const {
    if (lanes_ == 1) return {};
    std::vector<bool> waits(lanes_), took(lanes_);
    for (const Turn& turn : turns_) {
      (std::ranges::binary_search(taken, turn.place) ? took : waits)[turn.lane] = true;
    }
    std::vector<int> passed(lanes_);
    for (size_t lane = 0; lane < lanes_; ++lane) passed[lane] = waits[lane] && !took[lane] ? passed_[lane] + 1 : 0;
    return passed;
  }

  // Calls visit(place among the live, request) until it returns false.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (!turns_.empty()) {
      for (const Turn& turn : turns_) {
        if (!visit(turn.place, *turn.request)) return;
      }
      return;
    }
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
  struct Turn {
    size_t lane, place;
    const Queued* request;
  };

  std::span<const Queued> queue_;
  std::span<const size_t> expired_;
  size_t lanes_;
  std::vector<Turn> turns_;  // empty: the order is that of arrival
  std::vector<int> passed_;  // by lane; none where nothing waits
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

// Requests that may share a batch.
struct WaitingClass {
  uint64_t batch_class;
  Instant oldest;  // arrival
};

// In the order of their turns; where none waits for others, the first alone.
std::vector<WaitingClass> WaitingClasses(const LiveQueue& live, bool one_waits) {
  std::vector<WaitingClass> classes;
  live.ForEach([&](size_t, const Queued& request) {
    const auto found = std::ranges::find(classes, request.batch_class, &WaitingClass::batch_class);
    if (found == classes.end()) {
      classes.push_back({request.batch_class, request.arrival});
    } else {
      found->oldest = std::min(found->oldest, request.arrival);
    }
    return one_waits;
  });
  return classes;
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

// Fills `take` and `reason` where something is to run, else `wake`.
void ChooseBatch(const LiveQueue& live, Instant now, const Limits& limits, Decision& decision) {
  if (limits.max_rows == 0) {
    live.ForEach([&](size_t place, const Queued&) {
      decision.take = {place};
      return false;
    });
    decision.reason = BatchReason::kSingle;
    return;
  }
  for (const WaitingClass& waiting : WaitingClasses(live, limits.max_delay > absl::ZeroDuration())) {
    Prefix prefix = FittingPrefix(live, waiting.batch_class, limits);
    const Instant latest_start = waiting.oldest + limits.max_delay;
    if (const auto reason = ReasonToRun(prefix, limits, latest_start, now)) {
      decision.take = std::move(prefix.requests);
      decision.reason = *reason;
      return;
    }
    decision.wake = std::min(decision.wake, latest_start);
  }
}

}  // namespace

Limits LimitsOf(const ModelSpec& spec) {
  Limits limits;
  limits.max_rows = spec.dynamic_batching ? spec.max_batch_size : 0;
  limits.max_tokens = spec.max_batch_tokens;
  limits.max_delay = spec.max_queue_delay;
  limits.preferred_rows = spec.preferred_batch_sizes;
  bool delays = spec.queue_policy.delays_late;
  for (const auto& [level, policy] : spec.level_policies) delays = delays || policy.delays_late;
  if (spec.priority_levels > 1 || delays) limits.lanes = 2 * static_cast<size_t>(spec.priority_levels);
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

Decision Decide(std::span<const Queued> queue, Instant now, const Limits& limits, std::span<const int> passed) {
  Expiry expiry = FindExpired(queue, now);
  Decision decision{.expired = std::move(expiry.expired), .wake = expiry.next_deadline};
  const size_t count = queue.size() - decision.expired.size();
  if (count == 0 || count < limits.hold_until) return decision;
  LiveQueue live(queue, decision.expired, limits.lanes);
  live.SortByLanes(now, passed);
  ChooseBatch(live, now, limits, decision);
  if (decision.take.empty()) return decision;
  if (limits.lanes > 1) std::ranges::sort(decision.take);
  decision.passed = live.PassedAfter(decision.take);
  return decision;
}

}  // namespace swizzle
