#include "model_loader/interpreter/memory/kept_blocks.h"

#include <utility>

#include "kernels/base/integers.h"

namespace swizzle::interpreter {

void KeptBlocks::FreeAll() {
  for (const auto& [bytes, block] : kept_) source_->Free(block.data);
  kept_.clear();
  kept_bytes_ = 0;
}

void KeptBlocks::FreeKept() {
  const MutexLock lock(mutex_);
  FreeAll();
}

void KeptBlocks::FreeIdle() {
  const MutexLock lock(mutex_);
  if (std::exchange(run_seen_, run_) == run_) FreeAll();
}

BlockStore::Block KeptBlocks::Take(size_t bytes) {
  const size_t whole = RoundUp(bytes, size_t{64});
  {
    const MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(whole);
    if (found != kept_.end() && static_cast<double>(found->first) <= options_.larger * static_cast<double>(whole)) {
      const Block block{found->second.data, found->first};
      kept_bytes_ -= found->first;
      kept_.erase(found);
      return block;
    }
  }
  return {source_->Allocate(whole), whole};
}

void KeptBlocks::Give(Block block) {
  {
    const MutexLock lock(mutex_);
    if (kept_bytes_ + block.bytes <= options_.most_bytes) {
      kept_.emplace(block.bytes, Kept{block.data, run_});
      kept_bytes_ += block.bytes;
      return;
    }
  }
  source_->Free(block.data);
}

void KeptBlocks::BeginRun() {
  const MutexLock lock(mutex_);
  ++run_;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (kept->second.taken_in_run >= run_ - 2) {
      ++kept;
      continue;
    }
    source_->Free(kept->second.data);
    kept_bytes_ -= kept->first;
    kept = kept_.erase(kept);
  }
}

size_t KeptBlocks::kept_bytes() const {
  const MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace swizzle::interpreter
