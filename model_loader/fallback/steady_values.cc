#include "model_loader/fallback/steady_values.h"

#include <algorithm>
#include <cstring>

namespace swizzle::fallback {

std::shared_ptr<const SteadyValues::Values> SteadyValues::Find(const Shapes& shapes) {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(entries_, shapes, &Entry::shapes);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->values;
}

void SteadyValues::Keep(const Shapes& shapes, const Values& values) {
  int64_t bytes = 0;
  for (const auto& [value, array] : values) {
    if (array.IsSequence() || array.HasStrings()) return;
    bytes += array.bytes() + kSlackBytes;
  }
  if (bytes > kMostBytes) return;
  // A run's memory lends its blocks to the next one; these stay.
  const std::shared_ptr<Memory> memory = Memory::New({});
  auto kept = std::make_shared<Values>();
  for (const auto& [value, array] : values) {
    StatusOr<Array> copy = memory->Allocate(array.dtype, array.shape);
    if (!copy.ok()) return;
    if (array.bytes() > 0) std::memcpy(copy->data.get(), array.data.get(), static_cast<size_t>(array.bytes()));
    kept->emplace_back(value, *std::move(copy));
  }
  MutexLock lock(mutex_);
  if (std::ranges::find(entries_, shapes, &Entry::shapes) != entries_.end()) return;  // another run was faster
  entries_.push_front({shapes, std::move(kept), bytes});
  bytes_ += bytes;
  while (entries_.size() > kMostShapes || bytes_ > kMostBytes) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

}  // namespace swizzle::fallback
