// The head of an HTTP request, as the listener of metrics and probes reads it from anyone.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/telemetry/http_listener.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data), size);
  const swizzle::HttpRequest request = swizzle::ParseHttpRequest(head);
  if (request.status == 200) {
    // The path lies in the head, begins as paths do, and has no query.
    SWIZZLE_CHECK(!request.path.empty() && request.path.front() == '/');
    SWIZZLE_CHECK(head.find(request.path) != head.npos && request.path.find('?') == request.path.npos);
    SWIZZLE_CHECK(request.authorization.empty() || head.find(request.authorization) != head.npos);
  } else {
    SWIZZLE_CHECK(request.status >= 400 && request.status < 600);
  }
  return 0;
}
