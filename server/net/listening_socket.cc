#include "server/net/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace swizzle {
namespace {

constexpr int kBacklog = 1024;

struct HostAndPort {
  std::string host;  // without brackets
  std::string port;
};

std::optional<HostAndPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
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

// A socket that listens on the first of `candidates` that can be had; errno otherwise. Others may not listen beside it:
// they would get half of the connections.
FileDescriptor ListenOn(const addrinfo* candidates) {
  for (const addrinfo* info = candidates; info != nullptr; info = info->ai_next) {
    FileDescriptor descriptor(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (descriptor.is_open() && setsockopt(descriptor.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
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

uint64_t InodeOf(const std::string& path) {
  struct stat found = {};
  return lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) ? static_cast<uint64_t>(found.st_ino) : 0;
}

// Makes way for a new socket file where nobody listens on the one that is there. Says what is wrong, or nothing.
const char* RemoveStale(const std::string& path, const sockaddr_un& name) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return nullptr;
  if (!S_ISSOCK(found.st_mode)) return "there is a file of another kind";
  const FileDescriptor asking(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!asking.is_open()) return std::strerror(errno);
  if (connect(asking.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 || errno != ECONNREFUSED) {
    return "another process listens on it";
  }
  return unlink(path.c_str()) == 0 ? nullptr : std::strerror(errno);
}

StatusOr<ListeningSocket> ListenOnFile(const std::string& address, const std::string& path) {
  constexpr mode_t kMode = 0660;
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) {
    return InvalidArgument("'", address, "' is not an address to listen on: a socket's path has at most ",
                           sizeof(name.sun_path) - 1, " bytes");
  }
  path.copy(name.sun_path, path.size());
  if (const char* const wrong = RemoveStale(path, name)) return CannotListen(address, wrong);
  FileDescriptor descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // The mode before there is a file: nobody connects to it meanwhile.
  if (!descriptor.is_open() || fchmod(descriptor.get(), kMode) != 0 ||
      bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotListen(address, std::strerror(errno));
  }
  SocketFile file(path);
  if (listen(descriptor.get(), kBacklog) != 0) return CannotListen(address, std::strerror(errno));
  return ListeningSocket{std::move(descriptor), 0, std::move(file)};
}

}  // namespace

SocketFile::SocketFile(std::string path) : path_(std::move(path)), inode_(InodeOf(path_)) {}

SocketFile::~SocketFile() {
  if (!path_.empty() && inode_ != 0 && InodeOf(path_) == inode_) unlink(path_.c_str());
}

std::string UnixPath(const std::string& address) {
  constexpr std::string_view kScheme = "unix:", kAuthority = "//";
  if (!address.starts_with(kScheme)) return "";
  std::string path = address.substr(kScheme.size());
  if (path.starts_with("///")) path.erase(0, kAuthority.size());
  return path;
}

StatusOr<ListeningSocket> Listen(const std::string& address) {
  if (const std::string path = UnixPath(address); !path.empty()) return ListenOnFile(address, path);
  const std::optional<HostAndPort> split = SplitAddress(address);
  if (!split.has_value()) {
    return InvalidArgument("'", address,
                           "' is not an address to listen on: give HOST:PORT, such as 0.0.0.0:8002, or unix:PATH");
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(split->host.c_str(), split->port.c_str(), &hints, &found); error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  FileDescriptor socket = ListenOn(found);
  const int listen_error = errno;
  freeaddrinfo(found);
  if (!socket.is_open()) return CannotListen(address, std::strerror(listen_error));
  const int port = BoundPort(socket.get());
  return ListeningSocket{std::move(socket), port, SocketFile()};
}

bool IsExhausted(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace swizzle
