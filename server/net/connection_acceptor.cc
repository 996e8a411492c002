#include "server/net/connection_acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/check.h"
#include "server/net/unix_peers.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

constexpr int kSweepMs = 1000;

FileDescriptor OpenReserve() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

uint64_t InodeOf(int descriptor) {
  struct stat found = {};
  return fstat(descriptor, &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

// Zeros of what is no connection.
tcp_info InfoOf(int descriptor) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

// As gRPC writes it, but for the brackets, which that escapes.
std::string PeerOf(int descriptor) {
  if (std::string local = UnixPeerOf(descriptor); !local.empty()) return local;
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    // An IPv4 client of a socket for both.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
      return Concat("ipv4:", text.data(), ":", ntohs(v6.sin6_port));
    }
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return Concat("ipv6:[", text.data(), "]:", ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  return Concat("ipv4:", text.data(), ":", ntohs(v4.sin_port));
}

// The client sees a reset, rather than an end in order.
void Reset(const FileDescriptor& connection) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

// For whoever has the descriptor, too, who may go on reading what had come where it is only shut down.
void Abort(int connection) {
  const sockaddr none = {.sa_family = AF_UNSPEC, .sa_data = {}};
  if (connect(connection, &none, sizeof(none)) != 0) shutdown(connection, SHUT_RDWR);
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(ListeningSocket socket, int most, std::function<void(int)> take,
                                       std::function<void(const Closed&)> closed)
    : socket_(std::move(socket)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reserve_(OpenReserve()),
      most_(most),
      take_(std::move(take)),
      closed_(std::move(closed)),
      thread_([this] { Run(); }) {
  SWIZZLE_CHECK(stop_.is_open());
}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  SWIZZLE_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  socket_ = ListeningSocket();
}

ConnectionAcceptor::Counts ConnectionAcceptor::counts() const {
  const MutexLock lock(mutex_);
  return {static_cast<int64_t>(open_.size()), accepted_.load(), refused_limit_.load(), refused_files_.load(),
          ended_.load()};
}

void ConnectionAcceptor::Run() {
  std::array<pollfd, 2> wanted = {pollfd{stop_.get(), POLLIN, 0}, pollfd{socket_.descriptor.get(), POLLIN, 0}};
  Instant swept = Clock::Real().Now();
  while (true) {
    const int ready = poll(wanted.data(), wanted.size(), kSweepMs);
    if (wanted[0].revents != 0) return;
    if (const Instant now = Clock::Real().Now(); now >= swept + absl::Milliseconds(kSweepMs)) {
      try {
        ForgetClosed();
      } catch (...) {  // no memory: those that it forgot are not counted
      }
      swept = now;
    }
    if (ready > 0 && wanted[1].revents != 0 && !AcceptAll()) {
      accepting_ = false;
      return;
    }
  }
}

// What can be had now; false if nothing can be had any more.
bool ConnectionAcceptor::AcceptAll() {
  while (true) {
    FileDescriptor connection(accept4(socket_.descriptor.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.is_open()) {
      try {
        Take(std::move(connection));
      } catch (...) {  // no memory: the connection is closed
      }
    } else if (errno == EAGAIN) {
      return true;
    } else if (IsExhausted(errno)) {
      RefuseWithReserve();
      return true;  // to look whether to stop
    } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EFAULT || errno == EOPNOTSUPP) {
      return false;
    }  // else it was the connection's error, as when a client went at once
  }
}

void ConnectionAcceptor::Take(FileDescriptor connection) {
  if (counts().open >= most_ && ForgetClosed() >= static_cast<size_t>(most_)) {
    Reset(connection);
    ++refused_limit_;
    return;
  }
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  {
    const MutexLock lock(mutex_);
    const Instant now = Clock::Real().Now();
    open_.push_back({connection.get(), InodeOf(connection.get()), PeerOf(connection.get()), now, now});
    if (open_.size() == 1) changed_.SignalAll();
  }
  ++accepted_;
  take_(connection.Release());
}

// Uses the reserve's descriptor to accept a connection and close it. If another thread gets it first, or memory is
// short, the next connection waits a little.
void ConnectionAcceptor::RefuseWithReserve() {
  reserve_ = FileDescriptor();
  FileDescriptor connection(accept4(socket_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.is_open()) {
    Reset(connection);
    ++refused_files_;
  } else {
    pollfd stop = {stop_.get(), POLLIN, 0};
    poll(&stop, 1, 10);
  }
  connection = FileDescriptor();
  reserve_ = OpenReserve();
}

size_t ConnectionAcceptor::ForgetClosed() {
  const Instant now = Clock::Real().Now();
  std::vector<Closed> closed;
  size_t left = 0;
  {
    const MutexLock lock(mutex_);
    for (Connection& known : open_) {
      const tcp_info info = InfoOf(known.descriptor);
      known.gone = InodeOf(known.descriptor) != known.inode;
      if (!known.gone) {
        known.looked_at = now;
        if (known.peer.starts_with("unix")) continue;  // nobody counts what comes on it
        known.silence = absl::Milliseconds(info.tcpi_last_data_recv);
        known.received = static_cast<int64_t>(info.tcpi_bytes_received);
      } else if (closed_ != nullptr) {
        const absl::Duration silence = known.silence + (now - known.looked_at);
        closed.push_back({known.peer, now - known.accepted, silence, known.received, known.ended});
      }
    }
    std::erase_if(open_, [](const Connection& known) { return known.gone; });
    left = open_.size();
  }
  for (const Closed& connection : closed) closed_(connection);
  return left;
}

bool ConnectionAcceptor::End(const std::string& peer) {
  const MutexLock lock(mutex_);
  for (Connection& known : open_) {
    if (known.peer != peer || known.ended || InodeOf(known.descriptor) != known.inode) continue;
    Abort(known.descriptor);
    known.ended = true;
    ++ended_;
    return true;
  }
  return false;
}

void ConnectionAcceptor::EndAll() {
  const MutexLock lock(mutex_);
  for (const Connection& known : open_) {
    if (InodeOf(known.descriptor) == known.inode) shutdown(known.descriptor, SHUT_WR);
  }
}

int64_t ConnectionAcceptor::CountOpen() const {
  const MutexLock lock(mutex_);
  return std::ranges::count_if(open_, [](const Connection& known) { return InodeOf(known.descriptor) == known.inode; });
}

const ConnectionAcceptor::Connection* ConnectionAcceptor::Find(const std::string& peer) const {
  for (const Connection& known : open_) {
    if (known.peer == peer && InodeOf(known.descriptor) == known.inode) return &known;
  }
  return nullptr;
}

std::optional<Instant> ConnectionAcceptor::Accepted(const std::string& peer) const {
  const MutexLock lock(mutex_);
  const Connection* const found = Find(peer);
  return found == nullptr ? std::nullopt : std::optional(found->accepted);
}

ConnectionAcceptor::Traffic ConnectionAcceptor::TrafficOf(const std::string& peer) const {
  const MutexLock lock(mutex_);
  const Connection* const found = Find(peer);
  if (found == nullptr) return {};
  const tcp_info info = InfoOf(found->descriptor);
  return {static_cast<int64_t>(info.tcpi_bytes_received), static_cast<int64_t>(info.tcpi_bytes_acked)};
}

ConnectionAcceptor::Activity ConnectionAcceptor::activity() const {
  const MutexLock lock(mutex_);
  Activity now = {.accepted = accepted_};
  for (const Connection& known : open_) {
    if (InodeOf(known.descriptor) != known.inode) continue;
    ++now.open;
    now.received += static_cast<int64_t>(InfoOf(known.descriptor).tcpi_bytes_received);
    now.is_counted = now.is_counted && !known.peer.starts_with("unix");
  }
  return now;
}

bool ConnectionAcceptor::AwaitConnection() const {
  const MutexLock lock(mutex_);
  while (open_.empty() && !stopped_) changed_.Wait(mutex_);
  return !open_.empty();
}

int64_t RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;
  constexpr rlim_t kPlenty = 1 << 20;
  return static_cast<int64_t>(limit.rlim_cur < kPlenty ? limit.rlim_cur : kPlenty);
}

Status CheckFiles(int count) {
  std::vector<FileDescriptor> open(static_cast<size_t>(count));
  for (FileDescriptor& descriptor : open) {
    descriptor = OpenReserve();
    if (descriptor.is_open()) continue;
    return MakeError(StatusCode::kResourceExhausted, "this process may not open ", count,
                     " files more: ", std::strerror(errno), "; raise `ulimit -n`");
  }
  return absl::OkStatus();
}

}  // namespace swizzle
