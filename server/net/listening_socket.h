// Sockets that listen, for gRPC's connections and for HTTP's.
#ifndef SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_
#define SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_

#include <string>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle {

// Owns a file descriptor; -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  int Release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

struct ListeningSocket {
  FileDescriptor descriptor;  // does not block
  int port = 0;
};

// `address` is "HOST:PORT" or "[IPV6]:PORT"; port 0 takes a free one. INVALID_ARGUMENT if it is neither; UNAVAILABLE,
// naming the address, if it cannot be listened on.
StatusOr<ListeningSocket> Listen(const std::string& address);

// Whether a file or socket could not be opened because there are too many, or no memory: it may be had later.
bool IsExhausted(int error);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_NET_LISTENING_SOCKET_H_
