#include "server/net/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "kernels/base/check.h"

namespace swizzle {
namespace {

constexpr int kSweepMs = 1000;

FileDescriptor OpenReserve() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

uint64_t InodeOf(int descriptor) {
  struct stat found = {};
  return fstat(descriptor, &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

// The client sees a reset, rather than an end in order.
void Reset(const FileDescriptor& connection) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(ListeningSocket socket, int most, std::function<void(int)> take)
    : socket_(std::move(socket)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reserve_(OpenReserve()),
      most_(most),
      take_(std::move(take)),
      thread_([this] { Run(); }) {
  SWIZZLE_CHECK(stop_.valid());
}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  SWIZZLE_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
  socket_.descriptor = FileDescriptor();
}

ConnectionAcceptor::Counts ConnectionAcceptor::counts() const {
  return {open_count_.load(), accepted_.load(), refused_limit_.load(), refused_files_.load()};
}

void ConnectionAcceptor::Run() {
  std::array<pollfd, 2> wanted = {pollfd{stop_.get(), POLLIN, 0}, pollfd{socket_.descriptor.get(), POLLIN, 0}};
  while (true) {
    const int ready = poll(wanted.data(), wanted.size(), open_.empty() ? -1 : kSweepMs);
    if (wanted[0].revents != 0) return;
    if (ready == 0) ForgetClosed();
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
    if (connection.valid()) {
      Take(std::move(connection));
    } else if (errno == EAGAIN) {
      return true;
    } else if (IsExhausted(errno)) {
      RefuseWithReserve();
    } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EFAULT || errno == EOPNOTSUPP) {
      return false;
    }  // else it was the connection's error, as when a client went at once
  }
}

void ConnectionAcceptor::Take(FileDescriptor connection) {
  if (static_cast<int>(open_.size()) >= most_) ForgetClosed();
  if (static_cast<int>(open_.size()) >= most_) {
    Reset(connection);
    ++refused_limit_;
    return;
  }
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  open_.push_back({connection.get(), InodeOf(connection.get())});
  open_count_ = static_cast<int64_t>(open_.size());
  ++accepted_;
  take_(connection.Release());
}

// Uses the reserve's descriptor to accept a connection and close it. If another thread gets it first, or memory is
// short, the next connection waits a little.
void ConnectionAcceptor::RefuseWithReserve() {
  reserve_ = FileDescriptor();
  FileDescriptor connection(accept4(socket_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.valid()) {
    Reset(connection);
    ++refused_files_;
  } else {
    pollfd stop = {stop_.get(), POLLIN, 0};
    poll(&stop, 1, 10);
  }
  connection = FileDescriptor();
  reserve_ = OpenReserve();
}

void ConnectionAcceptor::ForgetClosed() {
  std::erase_if(open_, [](const Connection& known) { return InodeOf(known.descriptor) != known.inode; });
  open_count_ = static_cast<int64_t>(open_.size());
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

}  // namespace swizzle
