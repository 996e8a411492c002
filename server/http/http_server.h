// HTTP/1.1 on Boost.Beast, for the protocol as for metrics and probes: connections that are kept alive, requests one
// after the other, plain or over TLS. What anyone may send is bounded here, before anybody sees it.
//
// Connections are accepted by ConnectionAcceptor, as gRPC's are. A request's head has to come within a time and a size;
// its handler then says, from the head alone, whether the body is wanted, and how much of it. Bodies have to come
// within a time, and count, as they come, among those of all connections. While a request is answered, nothing more of
// its connection is read but whether the client has left. Whoever does not read an answer in time is cut off. Of too
// many connections the newest is refused, or, where the limits say so, the oldest makes room.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_SERVER_H_
#define SWIZZLE_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "server/http/http_call.h"
#include "server/net/connection_acceptor.h"
#include "server/security/tls_certificates.h"

namespace swizzle {

struct HttpLimits {
  int connections = 1;
  int64_t head_bytes = 16 << 10;
  int64_t body_bytes = 64 << 20;                      // of all bodies that are on their way
  absl::Duration handshake_time = absl::Seconds(10);  // for a handshake, and for a head
  absl::Duration body_time = absl::Minutes(2);        // for a body
  absl::Duration answer_time = absl::Seconds(60);     // for an answer to be read
  absl::Duration idle_time = absl::Minutes(15);       // between two requests; zero: any
  // A tenth more or less; the first answer after it ends the connection. Zero: any.
  absl::Duration connection_age = absl::ZeroDuration();
  int threads = 1;
  // A connection stays on one thread, and wakes no other, which costs more than a small request. Those of one thread
  // wait for each other; without this, whichever thread is idle goes on with any.
  bool stay_on_threads = false;
  bool one_request = false;  // a connection ends with its first answer
  int make_room_from = 0;    // connections, of which the oldest ends where another comes; 0: none does
};

// What becomes of a request whose head has come: it is refused, or may have a body.
struct HttpAdmission {
  std::optional<HttpAnswer> refusal = {};
  int64_t most_body_bytes = 0;
};

// Who answers. Called on the server's threads, concurrently, and does not block. What it throws ends the connection.
class HttpService {
 public:
  virtual ~HttpService() = default;
  virtual HttpAdmission Admit(const HttpHead& head) = 0;
  virtual void Take(std::shared_ptr<HttpCall> call) = 0;
  // The answer to what is no request, or is more than it may be: 400, 413, 431, or 503.
  virtual HttpAnswer Error(int status, const std::string& why) = 0;
};

struct HttpCounts {
  int64_t requests = 0;    // since the start, answered or refused
  int64_t ended_slow = 0;  // connections whose heads, bodies or reading took too long
  int64_t ended_aged = 0;  // connections that were of age
  int64_t ended_idle = 0;  // connections without a request for too long after one
  int64_t body_bytes = 0;  // of bodies that are on their way, or held
};

// Thread-safe.
class HttpServer {
 public:
  // Serves at `address` ("HOST:PORT"; port 0 takes a free one). `service` outlives it, and so does `certificates`;
  // null: no TLS. UNAVAILABLE, naming the address, if it cannot be had.
  static StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, const HttpLimits& limits,
                                                     HttpService& service, const TlsCertificates* certificates);
  // Shuts down.
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  virtual HttpCounts counts() const = 0;
  virtual ConnectionAcceptor::Counts connections() const = 0;

  // From now on each connection ends with the answer that is under way; those without a request end now.
  virtual void Drain() = 0;
  // Accepts nothing more, ends all connections, and waits until every request that a handler has is answered.
  virtual void Shutdown() = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_SERVER_H_
