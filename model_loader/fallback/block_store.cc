#include "model_loader/fallback/block_store.h"

#include <new>

#include "kernels/base/integers.h"

namespace swizzle::fallback {
namespace {

constexpr std::align_val_t kAlignment{64};

void Free(std::byte* data) { ::operator delete[](data, kAlignment); }

// A block may be so much larger than what is asked for.
constexpr size_t Enough(size_t bytes) { return bytes + bytes / 4; }

}  // namespace

BlockStore::~BlockStore() {
  MutexLock lock(mutex_);
  for (const auto& [bytes, block] : kept_) Free(block.data);
}

BlockStore::Block BlockStore::Take(size_t bytes) {
  const size_t whole = bytes < kLeastBytes ? bytes : RoundUp(bytes, kLeastBytes / 16);
  if (bytes >= kLeastBytes) {
    MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(whole);
    if (found != kept_.end() && found->first <= Enough(whole)) {
      const Block block{found->second.data, found->first};
      kept_bytes_ -= found->first;
      kept_.erase(found);
      return block;
    }
  }
  return {static_cast<std::byte*>(::operator new[](whole, kAlignment, std::nothrow)), whole};
}

void BlockStore::Give(Block block) {
  if (block.bytes >= kLeastBytes) {
    MutexLock lock(mutex_);
    if (kept_bytes_ + block.bytes <= most_bytes_) {
      kept_.emplace(block.bytes, Kept{block.data, run_});
      kept_bytes_ += block.bytes;
      return;
    }
  }
  Free(block.data);
}

void BlockStore::BeginRun() {
  MutexLock lock(mutex_);
  ++run_;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (kept->second.taken_in_run >= run_ - 2) {
      ++kept;
      continue;
    }
    Free(kept->second.data);
    kept_bytes_ -= kept->first;
    kept = kept_.erase(kept);
  }
}

size_t BlockStore::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace swizzle::fallback
