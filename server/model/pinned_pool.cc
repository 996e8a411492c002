#include "server/model/pinned_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/base/integers.h"

namespace swizzle {

PinnedPool::PinnedPool(std::unique_ptr<Buffer> memory) : memory_(std::move(memory)) {
  if (memory_->bytes() > 0) gaps_[0] = memory_->bytes();
}

std::shared_ptr<std::byte> PinnedPool::Take(size_t bytes) {
  const size_t held = RoundUp(std::max<size_t>(bytes, 1), kBufferAlignment);
  MutexLock lock(mutex_);
  // The first gap that is large enough: the memory in use stays together, and in the caches.
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(), [&](const auto& g) { return g.second - g.first >= held; });
  if (gap == gaps_.end()) return nullptr;
  const auto [begin, end] = *gap;
  gaps_.erase(gap);
  if (begin + held < end) gaps_[begin + held] = end;
  const auto give_back = [pool = shared_from_this(), begin = begin, held](std::byte*) { pool->GiveBack(begin, held); };
  return {memory_->data() + begin, give_back};
}

void PinnedPool::GiveBack(size_t offset, size_t bytes) {
  MutexLock lock(mutex_);
  size_t begin = offset, end = offset + bytes;
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == end) {
    end = next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin() && std::prev(next)->second == begin) begin = std::prev(next)->first;
  gaps_[begin] = end;
}

bool PinnedPool::Holds(std::span<const std::byte> bytes) const {
  const std::byte* const begin = memory_->data();
  const std::less_equal<const std::byte*> not_after;  // an order of all pointers, as < is not
  return not_after(begin, bytes.data()) && not_after(bytes.data() + bytes.size(), begin + memory_->bytes());
}

}  // namespace swizzle
