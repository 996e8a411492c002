// Blocks of memory that runs of one session take one after another, in the same sizes each time. Else the kernel hands
// them out and zeroes them page by page in every run: half of the processor time of an encoder with large scores.
// On a device an allocation takes longer than most operators do.
//
// Thread-safe. Blocks may be given back after the run that took them, by whoever holds its results.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_BLOCK_STORE_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_BLOCK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/fallback/run_budget.h"

namespace swizzle::fallback {

// Where blocks come from. Thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // On a multiple of 64; null where there is no memory.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* data) = 0;
};

class BlockStore {
 public:
  // Smaller ones the allocator keeps well by itself.
  static constexpr size_t kLeastBytes = size_t{64} << 10;
  // What a session keeps between runs at most.
  static constexpr size_t kMostBytes = size_t{512} << 20;

  struct Block {
    std::byte* data = nullptr;  // on a multiple of 64; null: there is no memory
    size_t bytes = 0;
  };

  // Of the host's memory, as far as `budget` has any; null: without a limit.
  explicit BlockStore(size_t most_bytes = kMostBytes, std::shared_ptr<RunBudget> budget = nullptr);
  // Of another source, from so many bytes on. A block may be `larger` times as large as what is asked for.
  BlockStore(std::unique_ptr<BlockSource> source, size_t least_bytes, size_t most_bytes, double larger)
      : source_(std::move(source)), least_bytes_(least_bytes), most_bytes_(most_bytes), larger_(larger) {}
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  ~BlockStore();

  // At least so many bytes, with anything in them.
  Block Take(size_t bytes);
  void Give(Block block);
  // Frees what neither of the last two runs took.
  void BeginRun();
  // Frees all that is kept.
  void FreeKept();
  // Likewise, if no run began since the last call.
  void FreeIdle();

  size_t kept_bytes() const;

 private:
  // Null where there is no memory.
  std::byte* Allocate(size_t bytes);
  void Free(std::byte* data, size_t bytes);
  void FreeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Kept {
    std::byte* data;
    int64_t taken_in_run;
  };

  const std::unique_ptr<BlockSource> source_;
  const size_t least_bytes_, most_bytes_;
  const double larger_ = 1.25;
  const std::shared_ptr<RunBudget> budget_;  // null: none
  mutable Mutex mutex_;
  std::multimap<size_t, Kept> kept_ ABSL_GUARDED_BY(mutex_);  // by size
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_seen_ ABSL_GUARDED_BY(mutex_) = -1;  // by FreeIdle
};

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_BLOCK_STORE_H_
