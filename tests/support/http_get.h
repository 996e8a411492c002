// A client for tests of HTTP listeners on this machine.
#ifndef SWIZZLE_TESTS_SUPPORT_HTTP_GET_H_
#define SWIZZLE_TESTS_SUPPORT_HTTP_GET_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "kernels/base/status.h"

namespace swizzle {

// A connection to 127.0.0.1:port that says nothing until it is told to.
class SilentClient {
 public:
  explicit SilentClient(int port) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~SilentClient() { close(descriptor_); }
  SilentClient(const SilentClient&) = delete;
  SilentClient& operator=(const SilentClient&) = delete;

  // Everything that is answered to `request`; empty if nothing listens.
  std::string Ask(const std::string& request) const { return Send(request) ? Read() : ""; }

  // Whether it could be sent.
  bool Send(const std::string& request) const {
    return connected_ && send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) >= 0;
  }
  // Everything that comes until the connection ends.
  std::string Read() const {
    std::string answer;
    char buffer[4096];
    for (ssize_t got; (got = recv(descriptor_, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
    }
    return answer;
  }

 private:
  const int descriptor_;
  bool connected_ = false;
};

// Head and body of the answer; empty if nothing listens.
inline std::string HttpGet(int port, const std::string& path, const std::string& method = "GET") {
  return SilentClient(port).Ask(Concat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_HTTP_GET_H_
