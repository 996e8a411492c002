// What runs of several sessions may hold of the host's memory together: each may take much, but not all at once. What
// sessions keep between runs counts, and is freed where another needs it.
//
// Thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_RUN_BUDGET_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_RUN_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"

namespace swizzle::interpreter {

class BlockStore;

// What a run was seen to hold. Value type.
struct RunMemory {
  int64_t bytes = 0;
  int64_t rows = 1;  // of its first input
};

class RunBudget {
 public:
  RunBudget() = default;
  RunBudget(const RunBudget&) = delete;
  RunBudget& operator=(const RunBudget&) = delete;

  // From now on; at first there is no limit. What is held beyond it is left alone.
  void Limit(int64_t most) { most_ = most; }
  int64_t held() const { return held_; }

  // Whether so many bytes may be taken, and then they are.
  bool Take(int64_t bytes);
  void Give(int64_t bytes) { held_ -= bytes; }

  // Has sessions that began no run since the last call keep nothing.
  void FreeIdle();

  // Of stores that keep blocks of it; they are there until they are removed.
  void Add(BlockStore& store);
  void Remove(BlockStore& store);

 private:
  bool TakeNow(int64_t bytes);

  std::atomic<int64_t> most_ = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> held_ = 0;
  Mutex mutex_;  // before those of stores
  std::set<BlockStore*> stores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_RUN_BUDGET_H_
