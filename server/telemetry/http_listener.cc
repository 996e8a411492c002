#include "server/telemetry/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "server/threading/clock.h"

namespace swizzle {
namespace {

constexpr int kThreads = 8;  // so that a few silent connections do not keep a probe waiting
constexpr int kBacklog = 64;
constexpr size_t kMaxHeadBytes = 8192;
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr std::string_view kHeadEnd = "\r\n\r\n";

class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}
  ~FileDescriptor() {
    if (value_ >= 0) close(value_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }

 private:
  int value_;
};

struct HostAndPort {
  std::string host;  // without brackets
  std::string port;
};

std::optional<HostAndPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0) return std::nullopt;
  HostAndPort result{address.substr(0, colon), address.substr(colon + 1)};
  const bool bracketed = result.host.size() > 2 && result.host.front() == '[' && result.host.back() == ']';
  if (bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  if (!bracketed && result.host.find_first_of(":[]") != std::string::npos) return std::nullopt;

  int port = -1;
  const char* end = result.port.data() + result.port.size();
  const auto parsed = std::from_chars(result.port.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port < 0 || port > 65535) return std::nullopt;
  return result;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string Encode(const HttpResponse& response, bool with_body) {
  return Concat("HTTP/1.1 ", response.status, " ", ReasonPhrase(response.status),
                "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
                "\r\nCache-Control: no-store\r\nConnection: close", kHeadEnd, with_body ? response.body : "");
}

class SocketListener final : public HttpListener {
 public:
  SocketListener(FileDescriptor socket, FileDescriptor stop, int port, HttpHandler handler)
      : socket_(std::move(socket)), stop_(std::move(stop)), port_(port), handler_(std::move(handler)) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~SocketListener() override {
    const uint64_t one = 1;
    SWIZZLE_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));  // never read: it stays readable for everyone
    for (std::thread& thread : threads_) thread.join();
  }
  int port() const override { return port_; }

 private:
  // Waits until `descriptor` is ready for `events`; false when the listener stops or the deadline has come.
  bool Await(int descriptor, short events, std::optional<Instant> deadline) const {
    std::array<pollfd, 2> wanted = {pollfd{stop_.get(), POLLIN, 0}, pollfd{descriptor, events, 0}};
    int timeout_ms = -1;
    if (deadline.has_value()) {
      const absl::Duration left = absl::Ceil(*deadline - Clock::Real().Now(), absl::Milliseconds(1));
      if (left <= absl::ZeroDuration()) return false;
      timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(left));
    }
    const int ready = poll(wanted.data(), wanted.size(), timeout_ms);
    if (ready < 0 && errno == EINTR) return Await(descriptor, events, deadline);
    return ready > 0 && wanted[0].revents == 0;
  }

  void Run() const {
    while (Await(socket_.get(), POLLIN, std::nullopt)) {
      const FileDescriptor connection(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (connection.valid()) {
        Serve(connection.get());
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        Await(-1, 0, Clock::Real().Now() + absl::Milliseconds(100));  // not in a busy loop
      }
    }
  }

  void Serve(int connection) const {
    const Instant deadline = Clock::Real().Now() + kPatience;
    const std::optional<std::string> head = ReadHead(connection, deadline);
    if (!head.has_value()) return;
    const HttpRequest request = ParseHttpRequest(*head);
    const HttpResponse response =
        request.status == 200
            ? handler_(request.path)
            : HttpResponse{.status = request.status, .body = "only GET and HEAD of short requests are served here\n"};
    if (!Write(connection, Encode(response, request.with_body), deadline)) return;
    shutdown(connection, SHUT_WR);
    Drain(connection, deadline);
  }

  // Up to the empty line, or more than kMaxHeadBytes; nothing if the client leaves first.
  std::optional<std::string> ReadHead(int connection, Instant deadline) const {
    std::string head;
    std::array<char, 2048> buffer;
    while (head.find(kHeadEnd) == head.npos && head.size() <= kMaxHeadBytes) {
      if (!Await(connection, POLLIN, deadline)) return std::nullopt;
      const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
      if (got > 0) head.append(buffer.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
    }
    return head;
  }

  bool Write(int connection, std::string_view text, Instant deadline) const {
    while (!text.empty()) {
      if (!Await(connection, POLLOUT, deadline)) return false;
      const ssize_t sent = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    }
    return true;
  }

  // Closing with unread input would reset the connection, and the client might lose the answer.
  void Drain(int connection, Instant deadline) const {
    std::array<char, 2048> buffer;
    while (Await(connection, POLLIN, deadline)) {
      const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    }
  }

  const FileDescriptor socket_;
  const FileDescriptor stop_;  // an eventfd, readable once the listener stops
  const int port_;
  const HttpHandler handler_;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

// A socket that listens on the first of `candidates` that can be had; errno otherwise.
FileDescriptor Listen(const addrinfo* candidates) {
  for (const addrinfo* info = candidates; info != nullptr; info = info->ai_next) {
    FileDescriptor descriptor(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (descriptor.valid() && setsockopt(descriptor.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(descriptor.get(), info->ai_addr, info->ai_addrlen) == 0 && listen(descriptor.get(), kBacklog) == 0) {
      return descriptor;
    }
  }
  return FileDescriptor();
}

int BoundPort(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Status CannotListen(const std::string& address, const char* why) {
  return MakeError(StatusCode::kUnavailable, "cannot listen on ", address, ": ", why);
}

}  // namespace

HttpRequest ParseHttpRequest(std::string_view head) {
  if (head.size() > kMaxHeadBytes) return {.status = 431};
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == line.npos || method_end == target_end || line.substr(target_end + 1, 7) != "HTTP/1.") {
    return {.status = 400};
  }
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (method != "GET" && method != "HEAD") return {.status = 405};
  if (target.empty() || target.front() != '/' || target.find(' ') != target.npos) return {.status = 400};
  return {.path = target.substr(0, target.find('?')), .with_body = method == "GET"};
}

StatusOr<std::unique_ptr<HttpListener>> NewHttpListener(const std::string& address, HttpHandler handler) {
  const std::optional<HostAndPort> split = SplitAddress(address);
  if (!split.has_value()) {
    return InvalidArgument("'", address, "' is not an address to listen on: give HOST:PORT, such as 0.0.0.0:8002");
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(split->host.c_str(), split->port.c_str(), &hints, &found); error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  FileDescriptor socket = Listen(found);
  const int listen_error = errno;
  freeaddrinfo(found);
  if (!socket.valid()) return CannotListen(address, std::strerror(listen_error));

  FileDescriptor stop(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!stop.valid()) return CannotListen(address, std::strerror(errno));
  const int port = BoundPort(socket.get());
  return std::make_unique<SocketListener>(std::move(socket), std::move(stop), port, std::move(handler));
}

}  // namespace swizzle
