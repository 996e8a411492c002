#include "model_loader/fallback/block_range.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/base/integers.h"

namespace swizzle::fallback {
namespace {

constexpr size_t kAlignment = 64;
// In which the range grows: a huge page.
constexpr size_t kStep = size_t{2} << 20;

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool TakeFrom(RunBudget* budget, size_t bytes) {
  return budget == nullptr || budget->Take(static_cast<int64_t>(bytes));
}

void GiveTo(RunBudget* budget, size_t bytes) {
  if (budget != nullptr) budget->Give(static_cast<int64_t>(bytes));
}

}  // namespace

BlockRange::BlockRange(std::shared_ptr<RunBudget> budget, size_t reserved)
    : budget_(std::move(budget)), reserved_(reserved) {
  if (budget_ != nullptr && reserved_ > 0) budget_->Add(*this);
}

BlockRange::~BlockRange() {
  if (budget_ != nullptr && reserved_ > 0) budget_->Remove(*this);
  const MutexLock lock(mutex_);
  GiveTo(budget_.get(), held_);
  if (start_ == nullptr) return;
  ASAN_UNPOISON_MEMORY_REGION(start_, writable_);
  munmap(start_, reserved_);
}

BlockStore::Block BlockRange::TakeFromHeap(size_t bytes) {
  if (!TakeFrom(budget_.get(), bytes)) return {};
  auto* const data = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (data == nullptr) GiveTo(budget_.get(), bytes);
  return {data, bytes};
}

bool BlockRange::Reserve() {
  if (start_ != nullptr || refused_ || reserved_ == 0) return start_ != nullptr;
  void* const start = mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  refused_ = start == MAP_FAILED;
  if (!refused_) start_ = static_cast<std::byte*>(start);
  return !refused_;
}

std::optional<size_t> BlockRange::Find(size_t bytes) const {
  for (const auto& [at, gap] : gaps_) {
    if (gap >= bytes) return at;
  }
  if (bytes > reserved_ || end_ > reserved_ - bytes) return std::nullopt;
  return end_;
}

bool BlockRange::Unlock(size_t end) {
  if (end <= writable_) return true;
  const size_t wanted = std::min(RoundUp(end, kStep), reserved_);
  if (mprotect(start_ + writable_, wanted - writable_, PROT_READ | PROT_WRITE) != 0) return false;
  ASAN_POISON_MEMORY_REGION(start_ + writable_, wanted - writable_);
  writable_ = wanted;
  return true;
}

BlockStore::Block BlockRange::Occupy(size_t at, size_t bytes) {
  if (at == end_) {
    end_ += bytes;
  } else {
    const auto gap = gaps_.find(at);
    const size_t left = gap->second - bytes;
    gaps_.erase(gap);
    if (left > 0) gaps_.emplace(at + bytes, left);
  }
  taken_ += bytes;
  held_ = std::max(held_, end_);
  most_end_ = std::max(most_end_, end_);
  ASAN_UNPOISON_MEMORY_REGION(start_ + at, bytes);
  return {start_ + at, bytes};
}

// The budget is asked without this store's lock, which it takes itself to free what is kept.
BlockStore::Block BlockRange::Take(size_t bytes) {
  if (bytes < kLeastBytes) return TakeFromHeap(bytes);
  const size_t whole = RoundUp(bytes, kAlignment);
  for (size_t granted = 0;;) {
    size_t missing = 0;
    {
      const MutexLock lock(mutex_);
      const std::optional<size_t> at = Reserve() ? Find(whole) : std::nullopt;
      if (at) missing = std::max(*at + whole, held_) - held_;
      if (at && missing <= granted) {
        GiveTo(budget_.get(), granted - missing);
        if (Unlock(*at + whole)) return Occupy(*at, whole);
        GiveTo(budget_.get(), missing);
        return {};
      }
      GiveTo(budget_.get(), granted);
      if (!at) break;
    }
    if (!TakeFrom(budget_.get(), missing)) return {};
    granted = missing;
  }
  return TakeFromHeap(bytes);
}

void BlockRange::Leave(Block block) {
  ASAN_POISON_MEMORY_REGION(block.data, block.bytes);
  taken_ -= block.bytes;
  auto at = static_cast<size_t>(block.data - start_);
  size_t bytes = block.bytes;
  const auto next = gaps_.lower_bound(at);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      bytes += before->second;
      gaps_.erase(before);
    }
  }
  if (next != gaps_.end() && next->first == at + bytes) {
    bytes += next->second;
    gaps_.erase(next);
  }
  if (at + bytes == end_) {
    end_ = at;
  } else {
    gaps_.emplace(at, bytes);
  }
  if (held_ - end_ > kMostKept) Shrink(end_ + kMostKept);
}

void BlockRange::Give(Block block) {
  {
    const MutexLock lock(mutex_);
    if (start_ != nullptr && block.data >= start_ && block.data < start_ + reserved_) {
      return Leave(block);
    }
  }
  ::operator delete[](block.data, std::align_val_t{kAlignment});
  GiveTo(budget_.get(), block.bytes);
}

void BlockRange::Shrink(size_t bytes) {
  const size_t kept = RoundUp(bytes, PageBytes());
  if (kept >= held_) return;
  madvise(start_ + kept, RoundUp(held_ - kept, PageBytes()), MADV_DONTNEED);
  GiveTo(budget_.get(), held_ - kept);
  held_ = kept;
}

void BlockRange::BeginRun() {
  const MutexLock lock(mutex_);
  ++run_;
  if (++runs_since_ < kRunsRemembered) return;
  Shrink(most_end_);
  most_end_ = end_;
  runs_since_ = 0;
}

void BlockRange::FreeKept() {
  const MutexLock lock(mutex_);
  Shrink(end_);
}

void BlockRange::FreeIdle() {
  const MutexLock lock(mutex_);
  if (std::exchange(run_seen_, run_) == run_) Shrink(end_);
}

size_t BlockRange::kept_bytes() const {
  const MutexLock lock(mutex_);
  return held_ - taken_;
}

}  // namespace swizzle::fallback
