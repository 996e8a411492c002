// Blocks of the host's memory, next to each other in one range of addresses that a session keeps: a block lies in the
// first gap that holds it, gaps that meet are one (Knuth, The Art of Computer Programming, volume 1, 2.5: first fit).
// So runs of ever other shapes need little more than the largest of them did. The C library's allocator, whose arenas
// have 64 MiB on their own thread and go on elsewhere, grew for a thousand runs; and kept whole, blocks of the last
// runs lay beside each other, each in a size of its own.
//
// The range is cut into chunks. One that a block touched is there, and counts in the budget, until it is freed; then it
// is addresses alone, with no claim on the system's memory. So gaps between blocks that are held can be freed, too.
//
// Small blocks lie elsewhere. There are few sizes of them, and those that were given back are taken again first.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_RANGE_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/memory/block_store.h"
#include "model_loader/interpreter/memory/run_budget.h"

namespace swizzle::interpreter {

class BlockRange final : public BlockStore {
 public:
  // Smaller ones come from the heap, and are kept by size. Also a chunk: a multiple of any page.
  static constexpr size_t kLeastBytes = size_t{64} << 10;
  // What a session keeps beside held blocks at most.
  static constexpr size_t kMostKept = size_t{512} << 20;
  // Likewise, of small ones.
  static constexpr size_t kMostSmall = size_t{1} << 20;
  // Addresses. What does not fit comes from the heap; so does all where the process may have only so many addresses
  // (RLIMIT_AS).
  static constexpr size_t kReserved = size_t{1} << 34;
  // What none of so many runs reached is freed.
  static constexpr int kRunsRemembered = 1024;

  // For runs that hold so many bytes at most: room for gaps, too. None under AddressSanitizer, which sees who writes
  // past a block of the heap.
  static size_t AddressesFor(int64_t most_bytes);

  // As far as `budget` has any memory; null: without a limit. `reserved`: 0 has all come from the heap, and nothing
  // kept.
  explicit BlockRange(std::shared_ptr<RunBudget> budget = nullptr, size_t reserved = kReserved);
  ~BlockRange() override;

  Block Take(size_t bytes) override;
  void Give(Block block) override;
  void BeginRun() override;
  // All chunks that no block touches.
  void FreeKept() override;
  void FreeIdle() override;
  size_t kept_bytes() const override;  // what FreeKept would free

 private:
  using VisitChunks = absl::FunctionRef<void(size_t first, size_t end)>;

  Block TakeFromHeap(size_t bytes);
  void GiveToHeap(Block block);
  Block TakeSmall(size_t bytes);
  // Whether it is kept.
  bool KeepSmall(Block block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeSmall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Reserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where so many bytes fit; none: nowhere.
  std::optional<size_t> Find(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs of chunks of [first, end) that are there, or are not.
  void ForEachRun(size_t first, size_t end, bool there, VisitChunks visit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the chunks that these bytes touch, what is not there.
  size_t MissingIn(size_t at, size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether all of them are now. The budget has been asked.
  bool Bring(size_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block Occupy(size_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes bytes of a block a gap.
  void Leave(size_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs of chunks from `from` on that are there and that no block touches.
  void ForEachKept(size_t from, VisitChunks visit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeFrom(size_t from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<RunBudget> budget_;  // null: none
  const size_t reserved_;
  mutable Mutex mutex_;  // after the budget's
  // Null: nothing is reserved. Set once, by the first block that is large.
  std::byte* start_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;                        // there are no addresses
  std::map<size_t, size_t> gaps_ ABSL_GUARDED_BY(mutex_);               // bytes, by where they begin; none is the last
  std::vector<bool> there_ ABSL_GUARDED_BY(mutex_);                     // by chunk; those behind are not
  size_t there_bytes_ ABSL_GUARDED_BY(mutex_) = 0;                      // of chunks
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;                            // of blocks
  size_t end_ ABSL_GUARDED_BY(mutex_) = 0;                              // of the last block
  size_t most_end_ ABSL_GUARDED_BY(mutex_) = 0;                         // of the last runs
  int runs_since_ ABSL_GUARDED_BY(mutex_) = 0;                          // most_end_ began
  std::vector<std::vector<std::byte*>> small_ ABSL_GUARDED_BY(mutex_);  // by class of sizes
  size_t small_bytes_ ABSL_GUARDED_BY(mutex_) = 0;                      // of those
  int64_t run_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_seen_ ABSL_GUARDED_BY(mutex_) = -1;  // by FreeIdle
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_RANGE_H_
