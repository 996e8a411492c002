// Gives memory that was freed back to the system. glibc keeps what is freed in the middle of its arenas, and, as the
// server tells it to (KeepFreedMemory), at their ends, too: after a burst of large requests half a gigabyte.
#ifndef SWIZZLE_SERVER_MEMORY_MEMORY_TRIM_H_
#define SWIZZLE_SERVER_MEMORY_MEMORY_TRIM_H_

#include <atomic>
#include <cstdint>
#include <functional>

namespace swizzle {

// What was freed, all of it. Throws nothing.
void GiveBackFreedMemory();

// While one is there, and KeepFreedMemory was called, glibc gives back nothing by itself; what was freed is when one
// ends. It does so with an arena locked: a thread of low priority, which others keep from going on, would stop all that
// share the arena for a tenth of a second.
class TrimLater {
 public:
  TrimLater();
  ~TrimLater();
  TrimLater(const TrimLater&) = delete;
  TrimLater& operator=(const TrimLater&) = delete;
};

// Has all threads share as many arenas of glibc's as `threads` run at once, unless the environment says how many. By
// default there are eight for each processor, one for nearly every thread of gRPC's, and each keeps room for the
// largest request that ever came to it. To be called before other threads allocate.
void ShareArenas(int threads);

// Requests take memory in the same sizes again and again. glibc would return that of large ones to the kernel each time
// and get it back page by page: of an image of 602 KB that takes half of what the server spends on the call. What
// loading has left over is returned first.
void KeepFreedMemory();

// Thread-compatible but for trims().
class MemoryTrim {
 public:
  // `inflight`: the bytes that requests hold now. `resident` and `trim` are the process's own, but in tests.
  explicit MemoryTrim(std::function<int64_t()> inflight);
  MemoryTrim(std::function<int64_t()> inflight, std::function<int64_t()> resident, std::function<void()> trim);

  // To be called a few times a second. Trims where much more is resident than after the last time, or than at first,
  // and requests have held little of it twice in a row. Where it is soon as much again, it waits longer each time. What
  // is little goes once a minute: else a server that is never alone has more every hour, in pieces of its arenas.
  void Look();
  int64_t trims() const { return trims_.load(std::memory_order_relaxed); }

 private:
  const std::function<int64_t()> inflight_;
  const std::function<int64_t()> resident_;
  const std::function<void()> trim_;
  int64_t least_ = 0;  // resident after the last trim
  int quiet_ = 0;      // times in a row that there was something to trim
  int patience_ = 2;   // of these, until it is trimmed
  int since_ = 0;      // times since the last trim
  std::atomic<int64_t> trims_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MEMORY_MEMORY_TRIM_H_
