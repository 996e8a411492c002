// What the requests of each connection hold of the bytes in flight, so that none takes the others' share. Thread-safe,
// header only.
#ifndef SWIZZLE_SERVER_RPC_CONNECTION_BYTES_H_
#define SWIZZLE_SERVER_RPC_CONNECTION_BYTES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/model/inflight_bytes.h"

namespace swizzle {

// Of one connection.
struct ConnectionAccount : InflightBytes {
  std::atomic<int64_t> streamed = 0;  // requests that came on its streams, until their answers are sent
  std::atomic<int64_t> whole = 0;     // bytes of all requests that came whole, but for those of less than kLeastCounted
};

class ConnectionBytes {
 public:
  // Requests that are smaller are not worth counting: as many as a connection may have open are a few MiB.
  static constexpr int64_t kLeastCounted = 4 << 10;

  // The account of a connection, by what gRPC calls its other end; it lasts as long as somebody has it.
  std::shared_ptr<ConnectionAccount> Of(const std::string& peer) {
    const MutexLock lock(mutex_);
    std::weak_ptr<ConnectionAccount>& account = accounts_[peer];
    if (std::shared_ptr<ConnectionAccount> known = account.lock()) return known;
    auto added = std::make_shared<ConnectionAccount>();
    account = added;
    if (accounts_.size() >= next_look_) {
      std::erase_if(accounts_, [](const auto& entry) { return entry.second.expired(); });
      next_look_ = std::max(kFirstLook, 2 * accounts_.size());
    }
    return added;
  }

  // Accounts that are kept, with those that nobody has any more and that were not thrown away yet.
  size_t size() const {
    const MutexLock lock(mutex_);
    return accounts_.size();
  }

 private:
  static constexpr size_t kFirstLook = 64;

  mutable Mutex mutex_;
  std::map<std::string, std::weak_ptr<ConnectionAccount>> accounts_ ABSL_GUARDED_BY(mutex_);
  size_t next_look_ ABSL_GUARDED_BY(mutex_) = kFirstLook;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CONNECTION_BYTES_H_
