#include "server/memory/memory_trim.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/memory/memory_limit.h"

namespace swizzle {
namespace {

// Less is not worth the page faults that follow.
constexpr int64_t kWorthwhile = 64 << 20, kLittle = 1 << 20;

// Looks, of which the last was quiet, before a trim.
constexpr int kLeastPatience = 2, kMostPatience = 64;
// Looks, from one trim to the next of a little: a minute.
constexpr int kLittlePatience = 240;

// Bytes that glibc keeps at the end of each arena once KeepFreedMemory was called: usually, and beside a TrimLater.
constexpr int kMostKept = 32 << 20, kAllKept = 1 << 30;

struct Arenas {
  Mutex mutex;
  int count ABSL_GUARDED_BY(mutex) = 0;            // 0: it is not known
  int later ABSL_GUARDED_BY(mutex) = 0;            // objects of TrimLater
  bool keep_freed ABSL_GUARDED_BY(mutex) = false;  // else glibc goes by what is freed, unless it is told anything
};

Arenas& TheArenas() {
  static Arenas* const arenas = new Arenas;
  return *arenas;
}

void SetKept([[maybe_unused]] const Arenas& arenas) ABSL_EXCLUSIVE_LOCKS_REQUIRED(arenas.mutex) {
#ifdef __GLIBC__
  if (arenas.keep_freed) mallopt(M_TRIM_THRESHOLD, arenas.later > 0 ? kAllKept : kMostKept);
#endif
}

// malloc_trim leaves alone the end of every arena but one. That is trimmed when something of at least 64 KiB is freed
// in the arena. Threads that are there at the same time get the arenas in turn, after those that have no thread.
void TrimEnds(int arenas) {
  constexpr size_t kFreed = 96 << 10;
  std::promise<void> all;
  const std::shared_future<void> over = all.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(2 * arenas));
  try {
    for (int i = 0; i < 2 * arenas; ++i) {
      threads.emplace_back([over] {
        void* volatile const freed = std::malloc(kFreed);  // volatile: or the compiler leaves it out
        over.wait();
        std::free(freed);
      });
    }
  } catch (const std::exception&) {  // no threads, no memory: those that were started have to do
  }
  all.set_value();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void GiveBackFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
  Arenas& arenas = TheArenas();
  const MutexLock lock(arenas.mutex);
  if (!arenas.keep_freed) return;
  mallopt(M_TRIM_THRESHOLD, 0);
  try {
    TrimEnds(arenas.count);
  } catch (const std::bad_alloc&) {  // then it is not to be had without
  }
  SetKept(arenas);
#endif
}

TrimLater::TrimLater() {
  Arenas& arenas = TheArenas();
  const MutexLock lock(arenas.mutex);
  ++arenas.later;
  SetKept(arenas);
}

TrimLater::~TrimLater() {
  Arenas& arenas = TheArenas();
  {
    const MutexLock lock(arenas.mutex);
    --arenas.later;
  }
  GiveBackFreedMemory();
}

void ShareArenas([[maybe_unused]] int threads) {
#ifdef __GLIBC__
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  if (tunables != nullptr && std::strstr(tunables, "arena_max") != nullptr) return;
  Arenas& arenas = TheArenas();
  const MutexLock lock(arenas.mutex);
  arenas.count = std::max(threads, 2);
  mallopt(M_ARENA_MAX, arenas.count);
#endif
}

void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kMostKept);
  Arenas& arenas = TheArenas();
  {
    const MutexLock lock(arenas.mutex);
    arenas.keep_freed = true;
  }
  GiveBackFreedMemory();
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
