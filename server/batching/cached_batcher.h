// A batcher whose requests are answered from a cache where they were asked before: those enter no queue.
#ifndef SWIZZLE_SERVER_BATCHING_CACHED_BATCHER_H_
#define SWIZZLE_SERVER_BATCHING_CACHED_BATCHER_H_

#include <memory>

#include "server/batching/batcher.h"
#include "server/batching/response_cache.h"
#include "server/telemetry/metrics.h"
#include "server/threading/clock.h"

namespace swizzle {

// Hands to `batcher` what is not in `cache`, and keeps its answers there until it is destroyed, when they go. A request
// that is there is answered before Submit returns, whatever waits; CheckRoom therefore refuses nothing. `clock` and
// `metrics` outlive the result; `metrics` may be null. Thread-safe, as any batcher.
std::unique_ptr<Batcher> NewCachedBatcher(std::unique_ptr<Batcher> batcher, std::shared_ptr<ResponseCache> cache,
                                          Clock& clock, ModelMetrics* metrics);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_CACHED_BATCHER_H_
