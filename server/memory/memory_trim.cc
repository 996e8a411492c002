#include "server/memory/memory_trim.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "server/memory/memory_limit.h"

namespace swizzle {
namespace {

// Less is not worth the page faults that follow.
constexpr int64_t kWorthwhile = 64 << 20, kLittle = 1 << 20;

// Looks, of which the last was quiet, before a trim.
constexpr int kLeastPatience = 2, kMostPatience = 64;
// Looks, from one trim to the next of a little: a minute.
constexpr int kLittlePatience = 240;

}  // namespace

void GiveBackFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void ShareArenas([[maybe_unused]] int threads) {
#ifdef __GLIBC__
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  if (tunables != nullptr && std::strstr(tunables, "arena_max") != nullptr) return;
  mallopt(M_ARENA_MAX, std::max(threads, 2));
#endif
}

void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kMostKept = 32 << 20;  // at the end of each arena
  GiveBackFreedMemory();
  mallopt(M_MMAP_THRESHOLD, kMostKept);
  mallopt(M_TRIM_THRESHOLD, kMostKept);
#endif
}

MemoryTrim::MemoryTrim(std::function<int64_t()> inflight)
    : MemoryTrim(std::move(inflight), ResidentBytes, GiveBackFreedMemory) {}

MemoryTrim::MemoryTrim(std::function<int64_t()> inflight, std::function<int64_t()> resident, std::function<void()> trim)
    : inflight_(std::move(inflight)), resident_(std::move(resident)), trim_(std::move(trim)), least_(resident_()) {}

void MemoryTrim::Look() {
  const int64_t resident = resident_();
  least_ = std::min(least_, resident);
  const int64_t grown = resident - least_;
  ++since_;
  if (since_ > 2 * patience_) patience_ = kLeastPatience;
  const int64_t freed = grown - inflight_();
  quiet_ = grown < kWorthwhile || freed < grown / 2 ? 0 : quiet_ + 1;
  if (quiet_ >= patience_) {
    patience_ = std::min(2 * patience_, kMostPatience);
  } else if (since_ < kLittlePatience || freed < kLittle) {
    return;
  }
  trim_();
  least_ = resident_();
  quiet_ = since_ = 0;
  trims_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace swizzle
