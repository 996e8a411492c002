#include "server/net/unix_peers.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr char kPeer[] = "swizzle-client-%llu";

// Writes the name of who is at the other end, if it has none. An abstract name begins with a zero, and has none at its
// end. The descriptor's inode is the connection's number, which no other has while it is open.
void NameUnixPeer(int descriptor, sockaddr* address, socklen_t room, socklen_t* length) {
  struct stat found = {};
  sockaddr_un name = {};
  if (address->sa_family != AF_UNIX || *length > sizeof(sa_family_t) || fstat(descriptor, &found) != 0) return;
  name.sun_family = AF_UNIX;
  const int written =
      std::snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, kPeer, static_cast<unsigned long long>(found.st_ino));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(written));
  std::memcpy(address, &name, std::min(room, size));
  *length = size;
}

}  // namespace

// In the place of the C library's, which does nothing but the system call.
extern "C" __attribute__((visibility("default"))) int getpeername(int descriptor, sockaddr* address,
                                                                  socklen_t* length) noexcept {
  const socklen_t room = length == nullptr ? 0 : *length;
  const long result = syscall(SYS_getpeername, descriptor, address, length);
  if (result == 0 && room >= sizeof(sa_family_t)) NameUnixPeer(descriptor, address, room, length);
  return static_cast<int>(result);
}

namespace swizzle {

std::string UnixPeerOf(int descriptor) {
  sockaddr_un name = {};
  socklen_t length = sizeof(name);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&name), &length) != 0 || name.sun_family != AF_UNIX)
    return "";
  const size_t size = length - offsetof(sockaddr_un, sun_path);
  if (name.sun_path[0] != '\0') return std::string("unix:") + std::string(name.sun_path, strnlen(name.sun_path, size));
  return "unix-abstract:" + std::string(name.sun_path + 1, size - 1);
}

}  // namespace swizzle
