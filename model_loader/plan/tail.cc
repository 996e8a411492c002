#include "model_loader/plan/tail.h"

#include <algorithm>

namespace swizzle {
namespace {

constexpr size_t kMostRowBytes = size_t{16} << 10;

// The slot that is written before `step` and read from it on, if there is exactly one.
std::optional<int> OnlySlotAcross(std::span<const Slot> slots, int step) {
  const auto crosses = [=](const Slot& slot) { return slot.first_step < step && slot.last_step >= step; };
  const auto found = std::ranges::find_if(slots, crosses);
  if (found == slots.end() || std::any_of(found + 1, slots.end(), crosses)) return std::nullopt;
  return static_cast<int>(found - slots.begin());
}

}  // namespace

std::optional<Tail> FindTail(std::span<const Step> steps, std::span<const Slot> slots) {
  for (int step = 1; step < static_cast<int>(steps.size()); ++step) {
    const std::optional<int> slot = OnlySlotAcross(slots, step);
    if (!slot || slots[*slot].layout != Layout::kNchw) continue;
    const auto row_bytes = static_cast<size_t>(slots[*slot].value.elements()) * sizeof(float);
    if (row_bytes <= kMostRowBytes) return Tail{step, *slot, row_bytes};
  }
  return std::nullopt;
}

}  // namespace swizzle
