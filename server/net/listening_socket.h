// Sockets that listen, for gRPC's connections and for HTTP's: on TCP, or for clients on the same host on Unix sockets.
#ifndef SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_
#define SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/base/status.h"
#include "model_loader/files/file_descriptor.h"

namespace swizzle {

// The file of a Unix socket, which goes with this unless somebody has put another in its place. Move-only.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);  // that was just made
  ~SocketFile();
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, {})), inode_(other.inode_) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(inode_, other.inode_);
    return *this;
  }

 private:
  std::string path_;  // empty: none
  uint64_t inode_ = 0;
};

struct ListeningSocket {
  FileDescriptor descriptor;  // does not block
  int port = 0;               // 0: a Unix socket
  SocketFile file = {};       // its
};

// The path of "unix:PATH", or "unix:///PATH" with an absolute one; empty where the address is of another kind.
std::string UnixPath(const std::string& address);

// `address` is "HOST:PORT" or "[IPV6]:PORT", where port 0 takes a free one, or "unix:PATH". Such a file lets its owner
// and group connect, less what the umask takes; one that nobody listens on is replaced. INVALID_ARGUMENT if it is none
// of these; UNAVAILABLE, naming the address, if it cannot be listened on.
StatusOr<ListeningSocket> Listen(const std::string& address);

// Whether a file or socket could not be opened because there are too many, or no memory: it may be had later.
bool IsExhausted(int error);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_
