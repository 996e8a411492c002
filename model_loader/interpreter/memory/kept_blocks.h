// Blocks that are kept whole for the next runs: of a source that only gives and takes whole ones, as devices do.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_KEPT_BLOCKS_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_KEPT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/memory/block_store.h"

namespace swizzle::interpreter {

// Where blocks come from. Thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // On a multiple of 64; null where there is no memory.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* data) = 0;
};

class KeptBlocks final : public BlockStore {
 public:
  struct Options {
    size_t most_bytes = std::numeric_limits<size_t>::max();  // that are kept
    double larger = 1.25;  // how many times as large as what is asked for a block may be
  };

  KeptBlocks(std::unique_ptr<BlockSource> source, const Options& options)
      : source_(std::move(source)), options_(options) {}
  ~KeptBlocks() override { FreeKept(); }

  Block Take(size_t bytes) override;
  void Give(Block block) override;
  // Frees what neither of the last two runs took.
  void BeginRun() override;
  void FreeKept() override;
  void FreeIdle() override;
  size_t kept_bytes() const override;

 private:
  void FreeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Kept {
    std::byte* data;
    int64_t taken_in_run;
  };

  const std::unique_ptr<BlockSource> source_;
  const Options options_;
  mutable Mutex mutex_;
  std::multimap<size_t, Kept> kept_ ABSL_GUARDED_BY(mutex_);  // by size
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_seen_ ABSL_GUARDED_BY(mutex_) = -1;  // by FreeIdle
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_KEPT_BLOCKS_H_
