// One connection of an HttpServer, and what all of them share.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_
#define SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/http/http_server.h"
#include "server/model/inflight_bytes.h"

namespace swizzle {

// Lives as long as something of it is under way. Thread-safe.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  virtual void Start() = 0;
  // Ends it, unless a request is under way.
  virtual void EndIdle() = 0;
  // Ends it; who has a request of it hears that the client has left.
  virtual void End() = 0;
};

// Outlives all connections. Thread-safe.
class HttpConnections {
 public:
  HttpConnections(const HttpLimits& its_limits, HttpService& its_service) : limits(its_limits), service(its_service) {}

  const HttpLimits limits;
  HttpService& service;
  boost::asio::io_context io;
  InflightBytes bodies;
  std::atomic<int64_t> requests = 0, ended_slow = 0, numbered = 0;
  std::atomic<bool> draining = false;

  void Add(HttpConnection* connection, std::weak_ptr<HttpConnection> its);
  void Remove(HttpConnection* connection);
  std::vector<std::shared_ptr<HttpConnection>> All() const;
  // Returns once there is none.
  void AwaitNone();

 private:
  mutable Mutex mutex_;
  CondVar removed_;
  std::unordered_map<HttpConnection*, std::weak_ptr<HttpConnection>> all_ ABSL_GUARDED_BY(mutex_);
};

// Becomes the owner of a connected socket, which does not block. `tls`: null where it is plain. Throws what Asio does.
std::shared_ptr<HttpConnection> NewHttpConnection(HttpConnections& all, int descriptor,
                                                  std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_CONNECTION_H_
