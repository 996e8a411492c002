#include "model_loader/interpreter/memory/block_range.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/base/integers.h"

#if defined(__SANITIZE_ADDRESS__) && __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#endif

namespace swizzle::interpreter {
namespace {

constexpr size_t kAlignment = 64, kChunk = BlockRange::kLeastBytes;
// Of a block: more is an error of whoever asks, which sanitizers' heaps would end the process for.
constexpr size_t kMostOfHeap = size_t{1} << 40;

bool TakeFrom(RunBudget* budget, size_t bytes) {
  return budget == nullptr || budget->Take(static_cast<int64_t>(bytes));
}

void GiveTo(RunBudget* budget, size_t bytes) {
  if (budget != nullptr) budget->Give(static_cast<int64_t>(bytes));
}

// Small blocks are of so many sizes: multiples of the alignment up to kFine, of kCoarse beyond.
constexpr size_t kFine = 4096, kCoarse = 4096;
constexpr size_t kFineClasses = kFine / kAlignment, kClasses = kFineClasses + BlockRange::kLeastBytes / kCoarse;

size_t ClassOf(size_t bytes) {
  if (bytes <= kFine) return bytes == 0 ? 0 : (bytes - 1) / kAlignment;
  return kFineClasses + (bytes - 1) / kCoarse;
}

size_t BytesOfClass(size_t index) {
  return index < kFineClasses ? (index + 1) * kAlignment : (index - kFineClasses + 1) * kCoarse;
}

bool HasAllAddresses() {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
}

}  // namespace

size_t BlockRange::AddressesFor([[maybe_unused]] int64_t most_bytes) {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  constexpr auto kHalf = static_cast<int64_t>(kReserved / 2);
  return 2 * static_cast<size_t>(std::clamp<int64_t>(most_bytes, 0, kHalf));
#endif
}

BlockRange::BlockRange(std::shared_ptr<RunBudget> budget, size_t reserved)
    : budget_(std::move(budget)), reserved_(RoundUp(reserved, kChunk)) {
  if (budget_ != nullptr && reserved_ > 0) budget_->Add(*this);
}

BlockRange::~BlockRange() {
  if (budget_ != nullptr && reserved_ > 0) budget_->Remove(*this);
  const MutexLock lock(mutex_);
  FreeSmall();
  GiveTo(budget_.get(), there_bytes_);
  if (start_ == nullptr) return;
  ASAN_UNPOISON_MEMORY_REGION(start_, there_.size() * kChunk);
  munmap(start_, reserved_);
}

BlockStore::Block BlockRange::TakeFromHeap(size_t bytes) {
  if (bytes > kMostOfHeap || !TakeFrom(budget_.get(), bytes)) return {};
  auto* const data = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (data == nullptr) GiveTo(budget_.get(), bytes);
  return {data, bytes};
}

void BlockRange::GiveToHeap(Block block) {
  ::operator delete[](block.data, std::align_val_t{kAlignment});
  GiveTo(budget_.get(), block.bytes);
}

BlockStore::Block BlockRange::TakeSmall(size_t bytes) {
  if (reserved_ == 0) return TakeFromHeap(bytes);
  const size_t index = ClassOf(bytes), whole = BytesOfClass(index);
  {
    const MutexLock lock(mutex_);
    if (!small_.empty() && !small_[index].empty()) {
      const Block block{small_[index].back(), whole};
      small_[index].pop_back();
      small_bytes_ -= whole;
      return block;
    }
  }
  return TakeFromHeap(whole);
}

bool BlockRange::KeepSmall(Block block) {
  if (reserved_ == 0 || block.bytes > kLeastBytes || small_bytes_ + block.bytes > kMostSmall) return false;
  if (small_.empty()) small_.resize(kClasses);
  small_[ClassOf(block.bytes)].push_back(block.data);
  small_bytes_ += block.bytes;
  return true;
}

void BlockRange::FreeSmall() {
  for (size_t index = 0; index < small_.size(); ++index) {
    for (std::byte* const data : small_[index]) GiveToHeap({data, BytesOfClass(index)});
    small_[index].clear();
  }
  small_bytes_ = 0;
}

bool BlockRange::Reserve() {
  if (start_ != nullptr || refused_ || reserved_ == 0) return start_ != nullptr;
  void* const start = HasAllAddresses()
                          ? mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                          : MAP_FAILED;
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

void BlockRange::ForEachRun(size_t first, size_t end, bool there, VisitChunks visit) const {
  const auto is = [&](size_t chunk) { return (chunk < there_.size() && there_[chunk]) == there; };
  while (first < end) {
    size_t last = first;
    while (last < end && is(last)) ++last;
    if (last > first) visit(first, last);
    first = last + 1;
  }
}

size_t BlockRange::MissingIn(size_t at, size_t bytes) const {
  size_t chunks = 0;
  ForEachRun(at / kChunk, CeilDiv(at + bytes, kChunk), false, [&](size_t first, size_t end) { chunks += end - first; });
  return chunks * kChunk;
}

bool BlockRange::Bring(size_t at, size_t bytes) {
  const size_t end_chunk = CeilDiv(at + bytes, kChunk);
  bool brought = true;
  ForEachRun(at / kChunk, end_chunk, false, [&](size_t first, size_t end) {
    brought = brought && mprotect(start_ + first * kChunk, (end - first) * kChunk, PROT_READ | PROT_WRITE) == 0;
  });
  if (!brought) return false;
  there_bytes_ += MissingIn(at, bytes);
  there_.resize(std::max(there_.size(), end_chunk));
  std::fill(there_.begin() + static_cast<std::ptrdiff_t>(at / kChunk),
            there_.begin() + static_cast<std::ptrdiff_t>(end_chunk), true);
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
  most_end_ = std::max(most_end_, end_);
  ASAN_UNPOISON_MEMORY_REGION(start_ + at, bytes);
  return {start_ + at, bytes};
}

// The budget is asked without this store's lock, which it takes itself to free what is kept.
BlockStore::Block BlockRange::Take(size_t bytes) {
  if (bytes < kLeastBytes) return TakeSmall(bytes);
  const size_t whole = RoundUp(bytes, kAlignment);
  for (size_t granted = 0;;) {
    size_t missing = 0;
    {
      const MutexLock lock(mutex_);
      const std::optional<size_t> at = Reserve() ? Find(whole) : std::nullopt;
      if (at) missing = MissingIn(*at, whole);
      if (at && missing <= granted) {
        GiveTo(budget_.get(), granted - missing);
        if (Bring(*at, whole)) return Occupy(*at, whole);
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

void BlockRange::Leave(size_t at, size_t bytes) {
  ASAN_POISON_MEMORY_REGION(start_ + at, bytes);
  taken_ -= bytes;
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
  // Half at a time: each time costs a call of the system and the faults that follow.
  if (there_bytes_ > taken_ + kMostKept) FreeFrom(end_ + kMostKept / 2);
  if (there_bytes_ > taken_ + kMostKept) FreeFrom(0);
}

void BlockRange::Give(Block block) {
  {
    const MutexLock lock(mutex_);
    if (start_ != nullptr && block.data >= start_ && block.data < start_ + reserved_) {
      return Leave(static_cast<size_t>(block.data - start_), block.bytes);
    }
    if (KeepSmall(block)) return;
  }
  GiveToHeap(block);
}

void BlockRange::ForEachKept(size_t from, VisitChunks visit) const {
  const auto visit_gap = [&](size_t begin, size_t end) {
    ForEachRun(CeilDiv(std::max(begin, from), kChunk), end / kChunk, true, visit);
  };
  for (const auto& [at, bytes] : gaps_) visit_gap(at, at + bytes);
  visit_gap(end_, there_.size() * kChunk);
}

// Mapped anew, a chunk has no claim on memory even where the system lets nobody claim more than there is.
void BlockRange::FreeFrom(size_t from) {
  std::vector<std::pair<size_t, size_t>> runs;
  ForEachKept(from, [&](size_t first, size_t end) { runs.emplace_back(first, end); });
  for (const auto& [first, end] : runs) {
    const size_t bytes = (end - first) * kChunk;
    ASAN_POISON_MEMORY_REGION(start_ + first * kChunk, bytes);
    if (mmap(start_ + first * kChunk, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED) {
      continue;  // the process has too many mappings: it stays there
    }
    std::fill(there_.begin() + static_cast<std::ptrdiff_t>(first), there_.begin() + static_cast<std::ptrdiff_t>(end),
              false);
    there_bytes_ -= bytes;
    GiveTo(budget_.get(), bytes);
  }
}

void BlockRange::BeginRun() {
  const MutexLock lock(mutex_);
  ++run_;
  if (++runs_since_ < kRunsRemembered) return;
  FreeFrom(most_end_);
  most_end_ = end_;
  runs_since_ = 0;
}

void BlockRange::FreeKept() {
  const MutexLock lock(mutex_);
  FreeSmall();
  FreeFrom(0);
}

void BlockRange::FreeIdle() {
  const MutexLock lock(mutex_);
  if (std::exchange(run_seen_, run_) != run_) return;
  FreeSmall();
  FreeFrom(0);
}

size_t BlockRange::kept_bytes() const {
  const MutexLock lock(mutex_);
  size_t chunks = 0;
  ForEachKept(0, [&](size_t first, size_t end) { chunks += end - first; });
  return chunks * kChunk + small_bytes_;
}

}  // namespace swizzle::interpreter
