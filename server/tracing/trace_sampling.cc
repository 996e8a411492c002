#include "server/tracing/trace_sampling.h"

namespace swizzle {

bool TraceSampling::Samples(const std::optional<TraceContext>& parent) {
  if (!on()) return false;
  if (parent ? !parent->sampled : !Chance(share_.load(std::memory_order_relaxed))) return false;
  int64_t left = count_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (count_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return left < 0;
}

TraceSettings TraceSampling::Current() const { return {.on = on_, .share = share_, .count = count_}; }

void TraceSampling::Change(const TraceSettings& settings) {
  share_ = settings.share;
  count_ = settings.count;
  on_ = settings.on;
}

}  // namespace swizzle
