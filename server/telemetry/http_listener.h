// A small HTTP/1.1 listener for metrics and probes: GET and HEAD without bodies, one request a connection, one handler
// for every path. Thread-safe.
//
// One thread looks after all connections, so that those that say nothing keep no probe waiting. Whoever is slow to ask
// or to read is cut off after kPatience, and of too many the oldest that has not asked. Why not the listener of
// prometheus-cpp: it serves nothing but metrics, and takes up to two seconds to stop.
#ifndef SWIZZLE_SERVER_TELEMETRY_HTTP_LISTENER_H_
#define SWIZZLE_SERVER_TELEMETRY_HTTP_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// What HttpListener makes of the head of a request: a status to answer at once, or 200 and what was asked for.
struct HttpRequest {
  int status = 200;
  std::string_view path = {};           // alone: what follows a '?' is cut off
  std::string_view authorization = {};  // the header's value; empty where there is none, or two
  bool with_body = true;                // GET; not HEAD
};
HttpRequest ParseHttpRequest(std::string_view head);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

// Called on the listener's threads, concurrently.
using HttpHandler = std::function<HttpResponse(const HttpRequest& request)>;

class HttpListener {
 public:
  virtual ~HttpListener() = default;  // stops at once; no handler runs afterwards
  virtual int port() const = 0;
};

// `address` is "HOST:PORT" or "[IPV6]:PORT"; port 0 takes a free one. INVALID_ARGUMENT if it is neither; UNAVAILABLE,
// naming the address, if it cannot be listened on.
StatusOr<std::unique_ptr<HttpListener>> NewHttpListener(const std::string& address, HttpHandler handler);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_HTTP_LISTENER_H_
