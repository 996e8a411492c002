#include "server/batching/admission.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/base/status.h"

namespace swizzle {
namespace {

// Of what was before, when one more batch has run: about ten batches count.
constexpr double kDecay = 0.9;

// What batches will take is known from those before them, which other work on the machine may have hurried or held up.
constexpr double kCaution = 1.15;

}  // namespace

void QueueLoad::Add(const Queued& request) {
  ++requests;
  rows += request.rows;
  bytes += request.bytes;
  work += request.work();
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
  bounds.requests = spec.max_queue_size;
  bounds.rows = std::max(spec.max_queue_rows, std::max<int64_t>(spec.max_batch_size, 1) * executors);
  bounds.bytes = spec.max_queue_bytes;
  bounds.wait = spec.max_queue_wait;
  return bounds;
}

void ServiceTime::Record(bool full, int64_t work, absl::Duration busy) {
  const double seconds = absl::ToDoubleSeconds(busy);
  batch_seconds_ = batch_seconds_ * kDecay + seconds;
  batches_ = batches_ * kDecay + 1.0;
  if (!full) return;
  full_seconds_ = full_seconds_ * kDecay + seconds;
  full_work_ = full_work_ * kDecay + static_cast<double>(work);
}

absl::Duration ServiceTime::Of(int64_t work, int64_t batch_work) const {
  if (full_work_ > 0.0) return absl::Seconds(static_cast<double>(work) * full_seconds_ / full_work_);
  if (batches_ == 0.0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(CeilDiv(work, batch_work)) * batch_seconds_ / batches_);
}

std::optional<Refusal> Refuse(const QueueBounds& bounds, const QueueLoad& waiting, const Queued& request,
                              absl::Duration expected, absl::Duration left) {
  if (waiting.requests >= bounds.requests) {
    return Refusal{Rejection::kQueueFull, Concat(waiting.requests, " requests")};
  }
  if (waiting.requests == 0) return std::nullopt;
  if (waiting.rows + request.rows > bounds.rows) return Refusal{Rejection::kQueueFull, Concat(waiting.rows, " rows")};
  if (waiting.bytes + request.bytes > bounds.bytes) {
    return Refusal{Rejection::kQueueFull, Concat(waiting.bytes, " bytes")};
  }
  const int64_t waiting_round = bounds.single ? waiting.requests : waiting.work;
  if (waiting_round < bounds.executors * (bounds.single ? 1 : bounds.batch_work)) return std::nullopt;
  if (kCaution * expected <= std::min(bounds.wait, left)) return std::nullopt;
  return Refusal{Rejection::kExpectedWait, Concat("a request would wait about ", absl::ToInt64Milliseconds(expected),
                                                  " ms", expected > left ? ", longer than until its deadline" : "")};
}

}  // namespace swizzle
