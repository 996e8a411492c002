#include "server/batching/batch_policy.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/base/check.h"

namespace swizzle {
namespace {

// Rows that are taken together: a request, or a part of one.
struct Part {
  const Queued* request = nullptr;
  int64_t first_row = 0, rows = 0;
  int64_t turn = 0, tokens = 0;

  bool is_last() const { return first_row + rows == request->rows; }
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

// In the order in which a batch takes of them.
std::vector<size_t> LanesInOrder(const RequestOrder& queue, std::span<const int> passed) {
  std::vector<size_t> lanes(queue.lanes());
  std::iota(lanes.begin(), lanes.end(), size_t{0});
  size_t most = 0;
  const auto passes = [&](size_t lane) {
    return lane < passed.size() && queue.FirstOf(lane) != nullptr ? passed[lane] : 0;
  };
  for (const size_t lane : lanes) {
    if (passes(lane) > passes(most)) most = lane;
  }
  if (passes(most) >= kMostPassed) std::rotate(lanes.begin(), lanes.begin() + most, lanes.begin() + most + 1);
  return lanes;
}

// The rows from this one on that are taken together.
Part PartOf(const Queued& request, int64_t first_row, int64_t turn, const Limits& limits) {
  if (!IsTakenInParts(limits, request)) return {&request, 0, request.rows, turn, request.tokens};
  Part part{&request, first_row, 0, turn, 0};
  const int64_t most = limits.max_rows > 0 ? limits.max_rows : request.rows;
  for (const int64_t tokens : request.row_tokens.subspan(static_cast<size_t>(first_row))) {
    if (part.rows == most || (part.rows > 0 && part.tokens + tokens > limits.part_tokens)) break;
    part.tokens += tokens;
    ++part.rows;
  }
  return part;
}

// Calls visit(part) for those of a class in a lane, in the order of their turns, until it returns false; then false.
template <typename Visit>
bool ForEachPart(const RequestOrder& queue, size_t lane, uint64_t batch_class, const Limits& limits, Visit visit) {
  // The next of each request of which there were some: a heap, whose first turn is in front.
  std::vector<Part> next;
  const auto is_later = [](const Part& a, const Part& b) {
    return std::pair(a.turn, a.request->ticket) > std::pair(b.turn, b.request->ticket);
  };
  const auto give = [&](const Part& part) {
    if (!visit(part)) return false;
    if (part.is_last()) return true;
    next.push_back(PartOf(*part.request, part.first_row + part.rows, part.turn + part.tokens, limits));
    std::ranges::push_heap(next, is_later);
    return true;
  };
  const auto give_next = [&] {
    std::ranges::pop_heap(next, is_later);
    const Part part = next.back();
    next.pop_back();
    return give(part);
  };
  bool goes_on = true;
  queue.ForEach(lane, batch_class, [&](const Queued& request) {
    const Part first = PartOf(request, 0, request.turn, limits);
    while (goes_on && !next.empty() && is_later(first, next.front())) goes_on = give_next();
    goes_on = goes_on && give(first);
    return goes_on;
  });
  while (goes_on && !next.empty()) goes_on = give_next();
  return goes_on;
}

Prefix FittingPrefix(const RequestOrder& queue, std::span<const size_t> lanes, uint64_t batch_class,
                     const Limits& limits) {
  Prefix prefix;
  const auto add = [&](const Part& part) {
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
  };
  for (const size_t lane : lanes) {
    if (!ForEachPart(queue, lane, batch_class, limits, add)) break;
  }
  return prefix;
}

// REQUIRES: something waits, of the class if one is given.
const Queued& FirstOf(const RequestOrder& queue, std::span<const size_t> lanes, std::optional<uint64_t> batch_class) {
  const Queued* first = nullptr;
  for (size_t i = 0; i < lanes.size() && first == nullptr; ++i) {
    first = batch_class ? queue.FirstOf(lanes[i], *batch_class) : queue.FirstOf(lanes[i]);
  }
  SWIZZLE_CHECK(first != nullptr);
  return *first;
}

// Requests that may share a batch, in the order of their turns; where none waits for others, the first alone.
std::vector<uint64_t> WaitingClasses(const RequestOrder& queue, std::span<const size_t> lanes, bool one_waits) {
  if (!one_waits) return {FirstOf(queue, lanes, std::nullopt).batch_class};
  std::vector<uint64_t> classes = queue.Classes();
  std::ranges::sort(classes, {}, [&](uint64_t batch_class) {
    const Queued& first = FirstOf(queue, lanes, batch_class);
    const auto lane = std::ranges::find(lanes, queue.LaneOf(first)) - lanes.begin();
    return std::tuple(lane, first.turn, first.ticket);
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
  std::ranges::sort(parts, {}, [](const Part& part) { return part.request->ticket; });
  for (const Part& part : parts) {
    if (decision.take.empty() || decision.take.back() != part.request->ticket) {
      decision.take.push_back(part.request->ticket);
      decision.rows.push_back(0);
    }
    decision.rows.back() += part.rows;
  }
}

// By lane, how often it was passed over when these have been taken.
std::vector<int> PassedAfter(const RequestOrder& queue, std::span<const Part> taken, std::span<const int> passed) {
  if (queue.lanes() == 1) return {};
  std::vector<int> after(queue.lanes());
  for (size_t lane = 0; lane < after.size(); ++lane) {
    const bool took = std::ranges::any_of(taken, [&](const Part& part) { return queue.LaneOf(*part.request) == lane; });
    if (took || queue.FirstOf(lane) == nullptr) continue;
    after[lane] = (lane < passed.size() ? passed[lane] : 0) + 1;
  }
  return after;
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

Decision Decide(const RequestOrder& queue, Instant now, const Limits& limits, std::span<const int> passed) {
  Decision decision{.wake = queue.NextDeadline()};
  if (queue.size() == 0 || queue.size() < limits.hold_until) return decision;
  const std::vector<size_t> lanes = LanesInOrder(queue, passed);
  const auto take = [&](std::vector<Part> parts, BatchReason reason) {
    decision.passed = PassedAfter(queue, parts, passed);
    decision.reason = reason;
    Take(std::move(parts), decision);
  };
  if (limits.max_rows == 0) {
    const Queued& first = FirstOf(queue, lanes, std::nullopt);
    take({PartOf(first, 0, first.turn, limits)}, BatchReason::kSingle);
    return decision;
  }
  const bool one_waits = limits.max_delay > absl::ZeroDuration();
  for (const uint64_t batch_class : WaitingClasses(queue, lanes, one_waits)) {
    Prefix prefix = FittingPrefix(queue, lanes, batch_class, limits);
    const Instant latest_start = one_waits ? queue.OldestOf(batch_class) + limits.max_delay : now;
    if (const auto reason = ReasonToRun(prefix, limits, latest_start, now)) {
      take(std::move(prefix.parts), *reason);
      return decision;
    }
    decision.wake = std::min(decision.wake, latest_start);
  }
  return decision;
}

}  // namespace swizzle
