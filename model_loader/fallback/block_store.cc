#include "model_loader/fallback/block_store.h"

#include <algorithm>
#include <new>

#include "kernels/base/integers.h"

namespace swizzle::fallback {
namespace {

constexpr std::align_val_t kAlignment{64};

class Heap final : public BlockSource {
 public:
  std::byte* Allocate(size_t bytes) override {
    return static_cast<std::byte*>(::operator new[](bytes, kAlignment, std::nothrow));
  }
  void Free(std::byte* data) override { ::operator delete[](data, kAlignment); }
};

// A block may be so much larger than what is asked for.
constexpr size_t Enough(size_t bytes) { return bytes + bytes / 4; }

}  // namespace

BlockStore::BlockStore(size_t most_bytes) : BlockStore(std::make_unique<Heap>(), kLeastBytes, most_bytes) {}

BlockStore::~BlockStore() {
  MutexLock lock(mutex_);
  for (const auto& [bytes, block] : kept_) source_->Free(block.data);
}

BlockStore::Block BlockStore::Take(size_t bytes) {
  const size_t whole = bytes < least_bytes_ ? bytes : RoundUp(bytes, std::max<size_t>(least_bytes_ / 16, 64));
  if (bytes >= least_bytes_) {
    MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(whole);
    if (found != kept_.end() && found->first <= Enough(whole)) {
      const Block block{found->second.data, found->first};
      kept_bytes_ -= found->first;
      kept_.erase(found);
      return block;
    }
  }
  return {source_->Allocate(whole), whole};
}

void BlockStore::Give(Block block) {
  if (block.bytes >= least_bytes_) {
    MutexLock lock(mutex_);
    if (kept_bytes_ + block.bytes <= most_bytes_) {
      kept_.emplace(block.bytes, Kept{block.data, run_});
      kept_bytes_ += block.bytes;
      return;
    }
  }
  source_->Free(block.data);
}

void BlockStore::BeginRun() {
  MutexLock lock(mutex_);
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

size_t BlockStore::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace swizzle::fallback
