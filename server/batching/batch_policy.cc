#include "server/batching/batch_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace swizzle {
namespace {

// Rows that are taken together: a request, or a part of one.
struct Part {
  size_t place = 0;  // of its request, among the live
  const Queued* request = nullptr;
  int64_t rows = 0, tokens = 0;
  size_t lane = 0;
  int64_t turn = 0;
};

// The longest prefix of a class's parts that fits in one batch, and the longest whose rows are a preferred size.
struct Prefix {
  std::vector<Part> parts;  // in the order of their turns
  int64_t rows = 0;
  int64_t tokens = 0;
  bool closed = false;   // nothing that is queued, or may come, can join it
  size_t preferred = 0;  // parts; 0: no prefix has a preferred size
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
  LiveQueue(std::span<const Queued> queue, std::span<const size_t> expired, const Limits& limits)
      : queue_(queue), expired_(expired), limits_(limits) {}

  // Puts it in the order of lanes and turns. Until then, and where that is the same, it is that of arrival.
  void Sort(Instant now, std::span<const int> passed) {
    if (limits_.lanes == 1 && IsSorted()) return;
    passed_.assign(passed.begin(), passed.end());
    passed_.resize(limits_.lanes);
    std::vector<bool> waiting(limits_.lanes);
    ForEach([&](const Part& whole) {
      const size_t lane = limits_.lanes == 1 ? 0 : LaneOf(*whole.request, now);
      waiting[lane] = true;
      AddParts(whole, lane);
      return true;
    });
    for (size_t lane = 0; lane < limits_.lanes; ++lane) {
      if (!waiting[lane]) passed_[lane] = 0;
    }
    const size_t most = static_cast<size_t>(std::ranges::max_element(passed_) - passed_.begin());
    const size_t first = passed_[most] >= kMostPassed ? most : 0;
    std::ranges::stable_sort(
        parts_, {}, [&](const Part& part) { return std::pair(part.lane == first ? 0 : part.lane + 1, part.turn); });
  }

  // By lane, how often it was passed over when these places have been taken, ascending.
  std::vector<int> PassedAfter(std::span<const size_t> taken) const {
    if (limits_.lanes == 1) return {};
    std::vector<bool> waits(limits_.lanes), took(limits_.lanes);
    for (const Part& part : parts_) {
      (std::ranges::binary_search(taken, part.place) ? took : waits)[part.lane] = true;
    }
    std::vector<int> passed(limits_.lanes);
    for (size_t lane = 0; lane < limits_.lanes; ++lane)
      passed[lane] = waits[lane] && !took[lane] ? passed_[lane] + 1 : 0;
    return passed;
  }

  // Calls visit(part) until it returns false.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (!parts_.empty()) {
      for (const Part& part : parts_) {
        if (!visit(part)) return;
      }
      return;
    }
    std::span<const size_t> expired = expired_;
    size_t place = 0;
    for (size_t i = 0; i < queue_.size(); ++i) {
      const Queued& request = queue_[i];
      if (!expired.empty() && expired.front() == i) {
        expired = expired.subspan(1);
      } else if (!visit(Part{place++, &request, request.rows, request.tokens, 0, request.turn})) {
        return;
      }
    }
  }

 private:
  bool IsSorted() const {
    return std::ranges::is_sorted(queue_, {}, &Queued::turn) &&
           std::ranges::none_of(queue_, [this](const Queued& request) { return IsTakenInParts(limits_, request); });
  }

  // As many as a batch may take.
  void AddParts(Part whole, size_t lane) {
    const Queued& request = *whole.request;
    whole.lane = lane;
    if (!IsTakenInParts(limits_, request)) return parts_.push_back(whole);
    int64_t before = 0;  // tokens
    for (size_t row = 0; row < request.row_tokens.size() && before < limits_.max_tokens;) {
      Part part{whole.place, &request, 0, 0, lane, request.turn + before};
      const int64_t most = limits_.max_rows > 0 ? limits_.max_rows : request.rows;
      for (; row < request.row_tokens.size() && part.rows < most; ++row, ++part.rows) {
        if (part.rows > 0 && part.tokens + request.row_tokens[row] > limits_.part_tokens) break;
        part.tokens += request.row_tokens[row];
      }
      before += part.tokens;
      parts_.push_back(part);
    }
  }

  std::span<const Queued> queue_;
  std::span<const size_t> expired_;
  const Limits& limits_;
  std::vector<Part> parts_;  // empty: the order is that of arrival
  std::vector<int> passed_;  // by lane; none where nothing waits
};

Prefix FittingPrefix(const LiveQueue& live, uint64_t batch_class, const Limits& limits) {
  Prefix prefix;
  live.ForEach([&](const Part& part) {
    if (part.request->batch_class != batch_class) return true;
    const bool fits = prefix.rows + part.rows <= limits.max_rows &&
                      (limits.max_tokens == 0 || prefix.tokens + part.tokens <= limits.max_tokens);
    if (!prefix.parts.empty() && !fits) {
      prefix.closed = true;
      return false;
    }
    prefix.parts.push_back(part);
    prefix.rows += part.rows;
    prefix.tokens += part.tokens;
    if (IsPreferred(limits, prefix.rows)) prefix.preferred = prefix.parts.size();
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
  live.ForEach([&](const Part& part) {
    const Queued& request = *part.request;
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
    prefix.parts.resize(prefix.preferred);
    return BatchReason::kPreferred;
  }
  if (IsBeyondPreferred(limits, prefix.rows)) return BatchReason::kPreferred;
  return latest_start <= now ? std::optional(BatchReason::kDelay) : std::nullopt;
}

// Fills `take` and `rows`.
void Take(std::vector<Part> parts, Decision& decision) {
  std::ranges::sort(parts, {}, &Part::place);
  for (const Part& part : parts) {
    if (decision.take.empty() || decision.take.back() != part.place) {
      decision.take.push_back(part.place);
      decision.rows.push_back(0);
    }
    decision.rows.back() += part.rows;
  }
}

// Fills `take`, `rows` and `reason` where something is to run, else `wake`.
void ChooseBatch(const LiveQueue& live, Instant now, const Limits& limits, Decision& decision) {
  if (limits.max_rows == 0) {
    live.ForEach([&](const Part& part) {
      Take({part}, decision);
      return false;
    });
    decision.reason = BatchReason::kSingle;
    return;
  }
  for (const WaitingClass& waiting : WaitingClasses(live, limits.max_delay > absl::ZeroDuration())) {
    Prefix prefix = FittingPrefix(live, waiting.batch_class, limits);
    const Instant latest_start = waiting.oldest + limits.max_delay;
    if (const auto reason = ReasonToRun(prefix, limits, latest_start, now)) {
      Take(std::move(prefix.parts), decision);
      decision.reason = *reason;
      return;
    }
    decision.wake = std::min(decision.wake, latest_start);
  }
}

}  // namespace

bool IsTakenInParts(const Limits& limits, const Queued& request) {
  return limits.part_tokens > 0 && request.tokens > limits.part_tokens && request.row_tokens.size() > 1;
}

Limits LimitsOf(const ModelSpec& spec) {
  Limits limits;
  limits.max_rows = spec.dynamic_batching ? spec.max_batch_size : 0;
  const int64_t parts_of_batch = limits.max_rows > 0 ? 4 : 1;
  limits.max_tokens = spec.max_batch_tokens;
  if (limits.max_rows > 0 && spec.preferred_batch_tokens > 0) {
    limits.max_tokens = std::min(limits.max_tokens, spec.preferred_batch_tokens);
  }
  limits.part_tokens = (limits.max_tokens + parts_of_batch - 1) / parts_of_batch;
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
  LiveQueue live(queue, decision.expired, limits);
  live.Sort(now, passed);
  ChooseBatch(live, now, limits, decision);
  if (decision.take.empty()) return decision;
  decision.passed = live.PassedAfter(decision.take);
  return decision;
}

}  // namespace swizzle
