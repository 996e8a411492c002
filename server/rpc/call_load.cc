#include "server/rpc/call_load.h"

#include <algorithm>

namespace swizzle {

// The numbers of streams are read one after the other: a request that is over between two of them is never less than
// none that runs.
CallLoad LoadOf(const InferCalls& calls) {
  const SharedRegions::Load shared = calls.shared_memory.load();
  const int64_t unread = calls.streamed.unread, requests = calls.streamed.requests;
  return {.inflight_bytes = calls.inflight.held(),
          .inflight_bytes_limit = calls.limits.max_inflight_bytes,
          .malformed = calls.refused.malformed,
          .too_large = calls.refused.too_large,
          .no_room = calls.refused.inflight_bytes,
          .slow_readers = calls.responses.ended(),
          .streams = calls.streamed.streams,
          .streamed_requests = {std::max<int64_t>(requests - unread, 0), unread},
          .shared_regions = shared.regions,
          .shared_bytes = shared.bytes,
          .shared_bytes_limit = shared.bytes_limit};
}

}  // namespace swizzle
