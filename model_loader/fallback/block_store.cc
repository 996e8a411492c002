#include "model_loader/fallback/block_store.h"

#include <algorithm>
#include <new>
#include <utility>

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

}  // namespace

BlockStore::BlockStore(size_t most_bytes, std::shared_ptr<RunBudget> budget)
    : source_(std::make_unique<Heap>()),
      least_bytes_(kLeastBytes),
      most_bytes_(most_bytes),
      budget_(std::move(budget)) {
  if (budget_ != nullptr) budget_->Add(*this);
}

BlockStore::~BlockStore() {
  if (budget_ != nullptr) budget_->Remove(*this);
  FreeKept();
}

std::byte* BlockStore::Allocate(size_t bytes) {
  const auto counted = static_cast<int64_t>(bytes);
  if (budget_ != nullptr && !budget_->Take(counted)) return nullptr;
  std::byte* const data = source_->Allocate(bytes);
  if (data == nullptr && budget_ != nullptr) budget_->Give(counted);
  return data;
}

void BlockStore::Free(std::byte* data, size_t bytes) {
  source_->Free(data);
  if (budget_ != nullptr) budget_->Give(static_cast<int64_t>(bytes));
}

void BlockStore::FreeAll() {
  for (const auto& [bytes, block] : kept_) Free(block.data, bytes);
  kept_.clear();
  kept_bytes_ = 0;
}

void BlockStore::FreeKept() {
  const MutexLock lock(mutex_);
  FreeAll();
}

void BlockStore::FreeIdle() {
  const MutexLock lock(mutex_);
  if (std::exchange(run_seen_, run_) == run_) FreeAll();
}

BlockStore::Block BlockStore::Take(size_t bytes) {
  const size_t whole = bytes < least_bytes_ ? bytes : RoundUp(bytes, std::max<size_t>(least_bytes_ / 16, 64));
  if (bytes >= least_bytes_) {
    MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(whole);
    if (found != kept_.end() && static_cast<double>(found->first) <= larger_ * static_cast<double>(whole)) {
      const Block block{found->second.data, found->first};
      kept_bytes_ -= found->first;
      kept_.erase(found);
      return block;
    }
  }
  return {Allocate(whole), whole};
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
  Free(block.data, block.bytes);
}

void BlockStore::BeginRun() {
  MutexLock lock(mutex_);
  ++run_;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (kept->second.taken_in_run >= run_ - 2) {
      ++kept;
      continue;
    }
    Free(kept->second.data, kept->first);
    kept_bytes_ -= kept->first;
    kept = kept_.erase(kept);
  }
}

size_t BlockStore::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace swizzle::fallback
