#include "server/model/pinned_pool.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

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

// The caller is the thread that received the request, whose cache it is in.
std::shared_ptr<const void> PinnedPool::Stage(std::span<TensorView> inputs) {
  auto copies = std::make_shared<std::vector<std::shared_ptr<std::byte>>>();
  for (const TensorView& input : inputs) {
    copies->push_back(Take(input.bytes.size()));
    if (copies->back() == nullptr) return nullptr;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<const std::byte> bytes = inputs[i].bytes;
    std::byte* const copy = (*copies)[i].get();
    if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());  // std::copy makes a loop over bytes of it
    inputs[i].bytes = {copy, bytes.size()};
  }
  return copies;
}

std::optional<size_t> PoolBytes(const ModelSpec& spec) {
  size_t row_bytes = 0;
  for (const TensorSpec& input : spec.inputs) {
    Shape dims = input.dims;
    if (spec.max_batch_size == 0 && !dims.empty() && dims[0] == -1) dims[0] = 1;
    const StatusOr<int64_t> elements = ElementCount(dims);
    if (!elements.ok()) return std::nullopt;
    row_bytes += static_cast<size_t>(*elements) * ElementBytes(input.dtype) + kBufferAlignment;
  }
  return std::min(row_bytes * PinnedPool::kMostRows, PinnedPool::kMostBytes);
}

}  // namespace swizzle
