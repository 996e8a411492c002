#include "server/telemetry/http_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/mutex.h"
#include "server/net/listening_socket.h"
#include "server/threading/clock.h"
#include "server/threading/task_threads.h"

namespace swizzle {
namespace {

constexpr int kWorkers = 2;  // so that a probe does not wait while metrics are gathered
constexpr size_t kMostConnections = 256;
constexpr int kExhaustedPauseMs = 10;
constexpr size_t kMaxHeadBytes = 8192;
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
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
                response.status == 401 ? "\r\nWWW-Authenticate: Bearer" : "",
                "\r\nCache-Control: no-store\r\nConnection: close", kHeadEnd, with_body ? response.body : "");
}

// One connection, from its acceptance to its end.
struct Connection {
  enum State : uint8_t {
    kAsking,     // until the empty line of its head
    kAnswering,  // a worker makes the answer
    kWriting,    // the answer is written
    kLeaving,    // what else it sends is read: closing with unread input would reset it, and it might lose the answer
  };
  FileDescriptor descriptor;
  Instant deadline;
  State state = kAsking;
  std::string head = {};
  std::string answer = {};
  size_t written = 0;
};

// One thread looks after all connections, so that none waits for another; workers make the answers.
class SocketListener final : public HttpListener {
 public:
  SocketListener(ListeningSocket socket, FileDescriptor wake, HttpHandler handler)
      : socket_(std::move(socket)),
        wake_(std::move(wake)),
        handler_(std::move(handler)),
        workers_(kWorkers),
        thread_([this] { Run(); }) {}
  ~SocketListener() override {
    stopping_ = true;
    Wake();
    thread_.join();
  }
  int port() const override { return socket_.port; }

 private:
  void Wake() const {
    const uint64_t one = 1;
    SWIZZLE_CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  }

  void Run() {
    while (!stopping_) {
      try {
        Turn();
      } catch (...) {  // no memory: there is one connection less
        EndOldest();
      }
    }
  }

  // Waits until there is something to do, and does it.
  void Turn() {
    std::vector<pollfd> wanted = {{wake_.get(), POLLIN, 0}, {socket_.descriptor.get(), POLLIN, 0}};
    std::vector<uint64_t> ids;  // of wanted, after the first two
    for (const auto& [id, connection] : connections_) {
      if (connection.state == Connection::kAnswering) continue;
      const short events = connection.state == Connection::kWriting ? POLLOUT : POLLIN;
      wanted.push_back({connection.descriptor.get(), events, 0});
      ids.push_back(id);
    }
    poll(wanted.data(), wanted.size(), UntilNextDeadline());
    if (wanted[0].revents != 0) TakeAnswers();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (wanted[i + 2].revents != 0) Serve(ids[i]);
    }
    EndLate();
    if (wanted[1].revents != 0) Accept();
  }

  int UntilNextDeadline() const {
    Instant next = Instant::InfiniteFuture();
    for (const auto& [id, connection] : connections_) next = std::min(next, connection.deadline);
    if (next == Instant::InfiniteFuture()) return -1;
    const absl::Duration left = absl::Ceil(next - Clock::Real().Now(), absl::Milliseconds(1));
    return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 0, 1000));
  }

  // Where there are too many, the oldest that has not asked yet makes room: who has something to ask does so at once.
  void Accept() {
    while (true) {
      FileDescriptor connection(accept4(socket_.descriptor.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!connection.is_open()) {
        if (!IsExhausted(errno)) return;
        if (EndOldest()) continue;
        pollfd wake = {wake_.get(), POLLIN, 0};
        poll(&wake, 1, kExhaustedPauseMs);  // who waits is still there, and would be looked at again and again
        return;
      }
      if (connections_.size() >= kMostConnections && !EndOldest()) return;
      connections_.emplace(next_id_++, Connection{std::move(connection), Clock::Real().Now() + kPatience});
    }
  }

  bool EndOldest() {
    for (const Connection::State state : {Connection::kAsking, Connection::kLeaving, Connection::kWriting}) {
      for (auto it = connections_.begin(); it != connections_.end(); ++it) {
        if (it->second.state != state) continue;
        connections_.erase(it);
        return true;
      }
    }
    return false;
  }

  void EndLate() {
    const Instant now = Clock::Real().Now();
    std::erase_if(connections_, [now](const auto& entry) { return entry.second.deadline <= now; });
  }

  // What can be done now without waiting.
  void Serve(uint64_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    bool goes_on = true;
    if (connection.state == Connection::kAsking) goes_on = Read(id, connection);
    if (connection.state == Connection::kWriting) goes_on = Write(connection);
    if (connection.state == Connection::kLeaving) goes_on = Receive(connection, nullptr);
    if (!goes_on) connections_.erase(found);
  }

  // Up to the empty line, or more than kMaxHeadBytes.
  bool Read(uint64_t id, Connection& connection) {
    if (!Receive(connection, &connection.head)) return false;
    if (connection.head.find(kHeadEnd) == std::string::npos && connection.head.size() <= kMaxHeadBytes) return true;
    workers_.Add([this, id, head = std::move(connection.head)] {
      if (stopping_) return;
      std::string answer;
      try {
        answer = Answer(head);
      } catch (...) {  // no memory: the connection ends without one
      }
      {
        const MutexLock lock(mutex_);
        answers_.emplace_back(id, std::move(answer));
      }
      Wake();
    });
    connection.state = Connection::kAnswering;
    connection.deadline = Instant::InfiniteFuture();
    return true;
  }

  std::string Answer(const std::string& head) const {
    const HttpRequest request = ParseHttpRequest(head);
    const HttpResponse response =
        request.status == 200
            ? handler_(request)
            : HttpResponse{.status = request.status, .body = "only GET and HEAD of short requests are served here\n"};
    return Encode(response, request.with_body);
  }

  void TakeAnswers() {
    uint64_t ignored;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &ignored, sizeof(ignored));
    std::vector<std::pair<uint64_t, std::string>> answers;
    {
      const MutexLock lock(mutex_);
      answers.swap(answers_);
    }
    for (auto& [id, answer] : answers) {
      const auto found = connections_.find(id);
      if (found == connections_.end()) continue;
      found->second.answer = std::move(answer);
      found->second.state = Connection::kWriting;
      found->second.deadline = Clock::Real().Now() + kPatience;
      Serve(id);
    }
  }

  // What has come, up to more than a head; false if the client has left.
  static bool Receive(const Connection& connection, std::string* text) {
    std::array<char, 2048> buffer;
    for (size_t all = 0; all <= kMaxHeadBytes;) {
      const ssize_t got = recv(connection.descriptor.get(), buffer.data(), buffer.size(), 0);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      if (got == 0) return false;
      all += static_cast<size_t>(got);
      if (text != nullptr) text->append(buffer.data(), static_cast<size_t>(got));
    }
    return true;
  }

  static bool Write(Connection& connection) {
    while (connection.written < connection.answer.size()) {
      const ssize_t sent = send(connection.descriptor.get(), connection.answer.data() + connection.written,
                                connection.answer.size() - connection.written, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      connection.written += static_cast<size_t>(sent);
    }
    shutdown(connection.descriptor.get(), SHUT_WR);
    connection.state = Connection::kLeaving;
    return true;
  }

  const ListeningSocket socket_;
  const FileDescriptor wake_;  // an eventfd, readable once there is an answer or an end
  const HttpHandler handler_;
  std::atomic<bool> stopping_ = false;
  std::map<uint64_t, Connection> connections_;  // the thread's; the oldest first
  uint64_t next_id_ = 0;                        // likewise
  Mutex mutex_;
  std::vector<std::pair<uint64_t, std::string>> answers_ ABSL_GUARDED_BY(mutex_);
  TaskThreads workers_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

namespace {

// The value of the only header with that name, which is in lower case; empty where there is none, or several.
std::string_view FindHeader(std::string_view head, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::string_view found;
  for (size_t end = head.find("\r\n"); end != std::string_view::npos; end = head.find("\r\n")) {
    head.remove_prefix(end + 2);
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const size_t colon = line.find(':');
    if (colon != name.size() || !std::ranges::equal(line.substr(0, colon), name, {}, lower)) continue;
    if (found.data() != nullptr) return {};
    found = line.substr(colon + 1);
    found.remove_prefix(std::min(found.find_first_not_of(" \t"), found.size()));
    found = found.substr(0, found.find_last_not_of(" \t") + 1);
  }
  return found;
}

}  // namespace

HttpRequest ParseHttpRequest(std::string_view head) {
  if (head.size() > kMaxHeadBytes) return {.status = 431};
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == std::string::npos || method_end == target_end || line.substr(target_end + 1, 7) != "HTTP/1.") {
    return {.status = 400};
  }
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (method != "GET" && method != "HEAD") return {.status = 405};
  if (target.empty() || target.front() != '/' || target.find(' ') != std::string::npos) return {.status = 400};
  return {.path = target.substr(0, target.find('?')),
          .authorization = FindHeader(head, "authorization"),
          .with_body = method == "GET"};
}

StatusOr<std::unique_ptr<HttpListener>> NewHttpListener(const std::string& address, HttpHandler handler) {
  SWIZZLE_ASSIGN_OR_RETURN(ListeningSocket socket, Listen(address));
  FileDescriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open())
    return MakeError(StatusCode::kUnavailable, "cannot listen on ", address, ": ", std::strerror(errno));
  return std::make_unique<SocketListener>(std::move(socket), std::move(wake), std::move(handler));
}

}  // namespace swizzle
