// How many bytes of memory requests hold, from their arrival until their answers are sent: bounded, and counted for a
// model and for the server. Thread-safe, header only.
#ifndef SWIZZLE_SERVER_MODEL_INFLIGHT_BYTES_H_
#define SWIZZLE_SERVER_MODEL_INFLIGHT_BYTES_H_

#include <atomic>
#include <cstdint>

namespace swizzle {

class InflightBytes {
 public:
  // Small requests go on where large ones have taken all that they may: the last eighth is kept for them.
  static constexpr int64_t kSmallBytes = 64 << 10;

  int64_t held() const { return held_.load(std::memory_order_relaxed); }

  // Whether there is room within `all` for `bytes` more of a request that then holds `total`; a request alone always
  // has room.
  bool Add(int64_t bytes, int64_t total, int64_t all) {
    const int64_t before = held_.fetch_add(bytes, std::memory_order_relaxed);
    const int64_t most = total <= kSmallBytes ? all : all - all / 8;
    if (before == total - bytes || before <= most - bytes) return true;
    Remove(bytes);
    return false;
  }
  void Remove(int64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> held_ = 0;
};

// What one request holds of one account; given back when it goes.
class HeldBytes {
 public:
  HeldBytes() = default;
  ~HeldBytes() { Clear(); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  int64_t bytes() const { return bytes_; }

  void Clear() {
    if (account_ != nullptr) account_->Remove(bytes_);
    account_ = nullptr;
    bytes_ = 0;
  }

  // From now on `total` bytes of `account`, which outlives this and is always the same; false if there is no room for
  // them within `all`.
  bool Hold(InflightBytes& account, int64_t total, int64_t all) {
    const int64_t more = total - bytes_;
    if (more > 0 && !account.Add(more, total, all)) return false;
    if (more < 0) account.Remove(-more);
    account_ = &account;
    bytes_ = total;
    return true;
  }

  // Likewise, room or not: the bytes are there.
  void HoldAnyway(InflightBytes& account, int64_t total) {
    account.Remove(bytes_ - total);
    account_ = &account;
    bytes_ = total;
  }

 private:
  InflightBytes* account_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_INFLIGHT_BYTES_H_
