#include "model_loader/interpreter/run/steady_values.h"

#include <cstring>

namespace swizzle::interpreter {
namespace {

// What a set of shapes and its list take beside the values' elements, about.
constexpr int64_t kEntryBytes = 256, kValueBytes = 128;

}  // namespace

std::shared_ptr<const SteadyValues::Values> SteadyValues::Find(const Shapes& shapes) {
  MutexLock lock(mutex_);
  const std::shared_ptr<const Values>* const found = kept_.Find(shapes);
  return found == nullptr ? nullptr : *found;
}

void SteadyValues::Keep(const Shapes& shapes, const Values& values) {
  int64_t bytes = kEntryBytes;
  for (const auto& [value, array] : values) {
    if (array.IsSequence() || array.HasStrings()) return;
    bytes += array.bytes() + kSlackBytes + kValueBytes;
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
  if (kept_.Find(shapes) != nullptr) return;  // another run was faster
  kept_.Keep(shapes, std::move(kept), bytes);
}

}  // namespace swizzle::interpreter
