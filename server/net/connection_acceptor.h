// Accepts connections and hands them to whoever serves them, up to a number.
//
// gRPC 1.51 accepts by itself only until there is no file descriptor left: then its listener is closed for good, while
// everything else goes on. Here a connection too many is accepted and closed, so that its client knows, and nobody
// waits behind it; where there is no descriptor for that, one is kept in reserve.
#ifndef SWIZZLE_SERVER_NET_CONNECTION_ACCEPTOR_H_
#define SWIZZLE_SERVER_NET_CONNECTION_ACCEPTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"
#include "server/net/listening_socket.h"

namespace swizzle {

// Thread-safe.
class ConnectionAcceptor {
 public:
  struct Counts {
    int64_t open = 0;           // as far as is known: closed ones are noticed within a second
    int64_t accepted = 0;       // since the start
    int64_t refused_limit = 0;  // since the start: there were as many as may be
    int64_t refused_files = 0;  // since the start: there was no file descriptor
    int64_t ended = 0;          // since the start, by End
  };

  // A connection that is closed, as it was when it was last looked at, within a second before.
  struct Closed {
    std::string peer;        // its other end
    absl::Duration age;      // since it was accepted, until it was noticed
    absl::Duration silence;  // since anything had come
    int64_t received = 0;    // bytes; of Unix sockets none are counted
    bool ended = false;      // by End
  };

  // `take` becomes the owner of a connection's descriptor, which does not block. `closed` hears of each
  // connection that is closed; it may be null. Both are called on the acceptor's thread.
  ConnectionAcceptor(ListeningSocket socket, int most, std::function<void(int)> take,
                     std::function<void(const Closed&)> closed = nullptr);
  ~ConnectionAcceptor();

  // After it `take` runs no more, and the port is closed.
  void Stop();

  Counts counts() const;
  // Ends the connection with this other end, "ipv4:1.2.3.4:5", "ipv6:[::1]:5" or UnixPeerOf's: whoever took it sees an
  // error, and nothing of what the client has sent besides. False if there is none that was not ended before.
  bool End(const std::string& peer);
  // Ends all in order: what was written comes to the clients, then the end. Whoever took one sees an error where it
  // writes more. Not counted.
  void EndAll();
  // How many there are now.
  int64_t CountOpen() const;
  // When the connection with this other end was accepted; nothing where there is none.
  std::optional<Instant> Accepted(const std::string& peer) const;
  struct Traffic {
    int64_t received = 0, sent = 0;  // bytes since its start, read or not
  };
  // What came and went on the connection with this other end; nothing where there is none.
  Traffic TrafficOf(const std::string& peer) const;
  // What all connections together have done. As long as it stays the same, nothing has come from any client.
  struct Activity {
    int64_t received = 0;  // bytes, read or not
    int64_t accepted = 0;  // since the start
    int64_t open = 0;
    bool is_counted = true;  // of Unix sockets no bytes are
    bool operator==(const Activity&) const = default;
  };
  Activity activity() const;
  // Waits until there is a connection, perhaps one that was closed within a second before. False once no more are
  // accepted, and there is none.
  bool AwaitConnection() const;

  // Whether connections can still be accepted.
  bool accepting() const { return accepting_.load(std::memory_order_relaxed); }

 private:
  // A connection is the same as long as its descriptor has its inode.
  struct Connection {
    int descriptor;
    uint64_t inode;
    std::string peer;
    Instant accepted, looked_at;
    absl::Duration silence = absl::ZeroDuration();  // when it was looked at
    int64_t received = 0;                           // likewise
    bool ended = false;                             // by End
    bool gone = false;                              // it is another's descriptor, or nobody's
  };

  // That is open with this other end; null if there is none.
  const Connection* Find(const std::string& peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  bool AcceptAll();
  void Take(FileDescriptor connection);
  void RefuseWithReserve();
  size_t ForgetClosed();  // returns how many are left

  ListeningSocket socket_;
  FileDescriptor stop_;     // an eventfd, readable once this is to end
  FileDescriptor reserve_;  // closed to make room for one that is then refused
  const int most_;
  const std::function<void(int)> take_;
  const std::function<void(const Closed&)> closed_;  // may be null
  mutable Mutex mutex_;
  mutable CondVar changed_;  // of what AwaitConnection waits for
  std::vector<Connection> open_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> accepted_ = 0, refused_limit_ = 0, refused_files_ = 0, ended_ = 0;
  std::atomic<bool> accepting_ = true;
  std::thread thread_;  // last: it uses all of the above
};

// Lets this process open as many files as it may (the hard limit); returns how many.
int64_t RaiseFileLimit();

// RESOURCE_EXHAUSTED unless this process may open so many more at a time.
Status CheckFiles(int count);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_NET_CONNECTION_ACCEPTOR_H_
