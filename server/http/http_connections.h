// All connections of an HttpServer: what they share, and which of them ends where there are too many.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_CONNECTIONS_H_
#define SWIZZLE_SERVER_HTTP_HTTP_CONNECTIONS_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"
#include "server/http/http_server.h"
#include "server/model/inflight_bytes.h"

namespace swizzle {

// Lives as long as something of it is under way. Thread-safe.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  std::atomic<bool> answering = false;   // a handler has a request of it
  std::atomic<bool> makes_room = false;  // it is to end for another

  virtual void Start() = 0;
  // Ends it, unless a request is under way, or has come.
  virtual void EndIdle() = 0;
  // Ends it for another, unless a request has come that nobody has begun to read.
  virtual void EndForRoom() = 0;
  // Ends it; who has a request of it hears that the client has left.
  virtual void End() = 0;
};

// What runs connections, on one thread or several.
struct HttpLoop {
  explicit HttpLoop(int threads) : io(threads) {}

  boost::asio::io_context io;
  std::atomic<int64_t> connections = 0;
};

// Outlives all connections. Thread-safe, but for what is said to be one thread's.
class HttpConnections {
 public:
  HttpConnections(const HttpLimits& its_limits, HttpService& its_service);

  const HttpLimits limits;
  HttpService& service;
  std::deque<HttpLoop> loops;
  InflightBytes bodies;
  std::atomic<int64_t> requests = 0, ended_slow = 0, ended_aged = 0, ended_idle = 0, numbered = 0;
  std::atomic<bool> draining = false;

  void Add(int64_t number, std::weak_ptr<HttpConnection> its);
  void Remove(int64_t number);
  // The oldest first.
  std::vector<std::shared_ptr<HttpConnection>> All() const;
  // Returns once there is none.
  void AwaitNone();
  // Where there are as many as limits.make_room_from, ends the oldest but for those that a handler has, or that have
  // asked: whoever is in order asks and reads at once. Waits until there may be one more, for a while. The acceptor's
  // thread's.
  void MakeRoom();
  // That of a connection that begins now. The acceptor's thread's.
  HttpLoop& LeastTaken();
  // When a connection that begins now will be of age. The acceptor's thread's.
  Instant DrawAge();

 private:
  mutable Mutex mutex_;
  CondVar removed_;
  std::map<int64_t, std::weak_ptr<HttpConnection>> all_ ABSL_GUARDED_BY(mutex_);  // by number
  std::minstd_rand random_;                                                       // the acceptor's thread's
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_CONNECTIONS_H_
