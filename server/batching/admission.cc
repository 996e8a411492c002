#include "server/batching/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

// Of what was before, when one more batch has run: about ten batches count.
constexpr double kDecay = 0.9;

// What batches will take is known from those before them, which other work on the machine may have hurried or held up.
constexpr double kCaution = 1.15;

// Of batches' sizes about their mean, over its square: with less they say nothing of how time grows with size.
constexpr double kLeastSpread = 0.01;

// What a connection has of a bound, what all leave of it, as whatever the bound is in.
template <typename T>
bool IsBeyondShare(const QueueBounds& bounds, T own, T left) {
  return own * static_cast<T>(100 - bounds.connection_percent) > left * static_cast<T>(bounds.connection_percent);
}

Refusal BeyondShare(const QueueLoad& waiting, const QueueLoad& own) {
  return {Rejection::kConnectionShare,
          Concat(waiting.requests, " requests, ", own.requests, " of this connection; the rest is kept for others")};
}

bool TakesTooMuch(const QueueBounds& bounds, const QueueLoad& waiting, const QueueLoad& own, const Queued& request) {
  return IsBeyondShare(bounds, own.requests + 1, bounds.requests - waiting.requests) ||
         IsBeyondShare(bounds, own.rows + request.rows, bounds.rows - waiting.rows) ||
         IsBeyondShare(bounds, own.bytes + request.bytes, bounds.bytes - waiting.bytes);
}

// The same of the time that what waits will take.
bool TakesTooLong(const QueueBounds& bounds, const QueueLoad& waiting, const QueueLoad& own, absl::Duration expected) {
  const double seconds = absl::ToDoubleSeconds(expected);
  const double own_seconds = seconds * static_cast<double>(own.work) / static_cast<double>(waiting.work);
  return IsBeyondShare(bounds, own_seconds, absl::ToDoubleSeconds(bounds.wait) - kCaution * seconds);
}

}  // namespace

void QueueLoad::Add(const Queued& request) {
  ++requests;
  rows += request.rows;
  bytes += request.bytes;
  work += request.work();
}

void QueueLoad::Add(const QueueLoad& other) {
  requests += other.requests;
  rows += other.rows;
  bytes += other.bytes;
  work += other.work;
}

void QueueLoad::Remove(const Queued& request) {
  --requests;
  rows -= request.rows;
  bytes -= request.bytes;
  work -= request.work();
}

QueueBounds BoundsOf(const ModelSpec& spec) {
  QueueBounds bounds;
  const int64_t executors = spec.executors();
  const Limits limits = LimitsOf(spec);
  bounds.executors = spec.executors();
  bounds.single = limits.max_rows == 0;
  bounds.batch_work = limits.max_tokens > 0 ? limits.max_tokens : std::max<int64_t>(limits.max_rows, 1);
  for (int level = 1; level <= spec.priority_levels; ++level) {
    bounds.level_requests.push_back(spec.PolicyOf(level).max_requests);
    bounds.requests += bounds.level_requests.back();
  }
  bounds.rows = std::max(spec.max_queue_rows, std::max<int64_t>(spec.max_batch_size, 1) * executors);
  bounds.bytes = spec.max_queue_bytes;
  bounds.wait = spec.max_queue_wait;
  bounds.connection_percent = spec.max_connection_queue_percent;
  return bounds;
}

void ServiceTime::Record(bool full, int64_t work, absl::Duration busy) {
  const double seconds = absl::ToDoubleSeconds(busy);
  const auto size = static_cast<double>(work);
  const auto add = [](double& sum, double value) { sum = sum * kDecay + value; };
  add(all_.batches, 1.0);
  add(all_.work, size);
  add(all_.seconds, seconds);
  add(all_.work_squared, size * size);
  add(all_.work_seconds, size * seconds);
  if (!full) return;
  add(full_seconds_, seconds);
  add(full_work_, size);
}

void ServiceTime::RecordFirst(bool full, int64_t work, int64_t batch_work, absl::Duration busy) {
  // Where all shapes are new, what is expected comes to what they take in a few batches.
  constexpr double kMostOfExpected = 2.0;
  const bool is_first_of_all = !std::exchange(any_first_, true);
  if (known()) {
    Record(full, work, std::min(busy, kMostOfExpected * Of(work, batch_work)));
  } else if (!is_first_of_all) {
    Record(full, work, busy);
  }
}

double ServiceTime::SecondsByLine(double work, double batch_work) const {
  const double by_work = all_.seconds / all_.work;
  const double spread = all_.batches * all_.work_squared - all_.work * all_.work;
  double slope = by_work;
  if (spread > kLeastSpread * all_.work * all_.work) {
    slope = std::clamp((all_.batches * all_.work_seconds - all_.work * all_.seconds) / spread, 0.0, by_work);
  }
  const double each_batch = (all_.seconds - slope * all_.work) / all_.batches;
  return slope * work + each_batch * std::ceil(work / batch_work);
}

absl::Duration ServiceTime::Of(int64_t work, int64_t batch_work) const {
  if (full_work_ > 0.0) return absl::Seconds(static_cast<double>(work) * full_seconds_ / full_work_);
  if (all_.work == 0.0) return absl::ZeroDuration();
  return absl::Seconds(SecondsByLine(static_cast<double>(work), static_cast<double>(batch_work)));
}

std::optional<Refusal> RefuseLevel(const QueueBounds& bounds, int level, const QueueLoad& waiting) {
  if (waiting.requests < bounds.level_requests[static_cast<size_t>(level - 1)]) return std::nullopt;
  const bool has_levels = bounds.level_requests.size() > 1;
  return Refusal{Rejection::kQueueFull,
                 Concat(waiting.requests, " requests", has_levels ? Concat(" of priority ", level) : "")};
}

bool FillsARound(const QueueBounds& bounds, const QueueLoad& waiting) {
  if (bounds.single) return waiting.requests >= bounds.executors;
  return waiting.work >= bounds.executors * bounds.batch_work;
}

std::optional<Refusal> Refuse(const QueueBounds& bounds, const QueueLoad& waiting, const QueueLoad& own,
                              const Queued& request, const ExpectedWait& expected, absl::Duration left) {
  if (waiting.requests >= bounds.requests) {
    return Refusal{Rejection::kQueueFull, Concat(waiting.requests, " requests")};
  }
  if (waiting.requests == 0) return std::nullopt;
  if (waiting.rows + request.rows > bounds.rows) return Refusal{Rejection::kQueueFull, Concat(waiting.rows, " rows")};
  if (waiting.bytes + request.bytes > bounds.bytes) {
    return Refusal{Rejection::kQueueFull, Concat(waiting.bytes, " bytes")};
  }
  if (own.requests > 0 && TakesTooMuch(bounds, waiting, own, request)) return BeyondShare(waiting, own);
  if (!FillsARound(bounds, waiting)) return std::nullopt;
  if (kCaution * expected.before <= std::min(bounds.wait, left)) {
    if (own.requests == 0 || !TakesTooLong(bounds, waiting, own, expected.all)) return std::nullopt;
    return BeyondShare(waiting, own);
  }
  return Refusal{Rejection::kExpectedWait,
                 Concat("a request would wait about ", absl::ToInt64Milliseconds(expected.before), " ms",
                        expected.before > left ? ", longer than until its deadline" : "")};
}

}  // namespace swizzle
