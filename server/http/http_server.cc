#include "server/http/http_server.h"

#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/http_connection.h"
#include "server/http/http_connections.h"
#include "server/http/http_tls.h"
#include "server/net/listening_socket.h"

namespace swizzle {
namespace {

class BeastServer final : public HttpServer {
 public:
  BeastServer(ListeningSocket socket, const HttpLimits& limits, HttpService& service,
              const TlsCertificates* certificates)
      : port_(socket.port), tls_(certificates), connections_(limits, service) {
    for (HttpLoop& loop : connections_.loops) work_.emplace_back(loop.io.get_executor());
    for (size_t i = 0; i < static_cast<size_t>(limits.threads); ++i) {
      threads_.emplace_back([&io = connections_.loops[i % connections_.loops.size()].io] { Run(io); });
    }
    acceptor_ = std::make_unique<ConnectionAcceptor>(std::move(socket), limits.connections,
                                                     [this](int descriptor) { Take(descriptor); });
  }
  ~BeastServer() override {
    Shutdown();
    work_.clear();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const override { return port_; }
  HttpCounts counts() const override {
    return {.requests = connections_.requests,
            .ended_slow = connections_.ended_slow,
            .ended_aged = connections_.ended_aged,
            .ended_idle = connections_.ended_idle,
            .body_bytes = connections_.bodies.held()};
  }
  ConnectionAcceptor::Counts connections() const override { return acceptor_->counts(); }
  void Drain() override {
    connections_.draining = true;
    for (const auto& connection : connections_.All()) connection->EndIdle();
  }
  void Shutdown() override {
    acceptor_->Stop();
    for (const auto& connection : connections_.All()) connection->End();
    connections_.AwaitNone();
  }

 private:
  // Connections contain what their handlers throw; what is thrown while one is ended for that ends no thread.
  static void Run(boost::asio::io_context& io) {
    while (true) {
      try {
        io.run();
        return;
      } catch (...) {
      }
    }
  }

  void Take(int descriptor) {
    try {
      connections_.MakeRoom();
      NewHttpConnection(connections_, descriptor, tls_.Current())->Start();
    } catch (...) {
      close(descriptor);
    }
  }

  const int port_;
  HttpTls tls_;  // the acceptor's thread's
  HttpConnections connections_;
  std::vector<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::vector<std::thread> threads_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, const HttpLimits& limits,
                                                        HttpService& service, const TlsCertificates* certificates) {
  SWIZZLE_ASSIGN_OR_RETURN(ListeningSocket socket, Listen(address));
  return std::make_unique<BeastServer>(std::move(socket), limits, service, certificates);
}

}  // namespace swizzle
