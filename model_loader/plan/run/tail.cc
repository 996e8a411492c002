#include "model_loader/plan/run/tail.h"

#include <algorithm>
#include <vector>

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

size_t RowBytes(const Slot& slot) {
  return static_cast<size_t>(slot.value.elements()) * ElementBytes(slot.storage.dtype);
}

bool IsSmall(const Slot& slot) { return RowBytes(slot) <= kMostRowBytes; }

// One that reads value `only`, if that is given.
std::optional<Tail> FindTailOf(std::span<const Step> steps, std::span<const Slot> slots, std::optional<int> only) {
  for (int step = 1; step < static_cast<int>(steps.size()); ++step) {
    const std::optional<int> slot = OnlySlotAcross(slots, step);
    if (!slot || slots[*slot].storage != Storage{} || !IsSmall(slots[*slot])) continue;
    if (only && slots[*slot].value_index != *only) continue;
    const auto large = [=](const Slot& written) { return written.first_step >= step && !IsSmall(written); };
    if (std::ranges::any_of(slots, large)) continue;
    return Tail{step, *slot, RowBytes(slots[*slot])};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tail> FindTail(std::span<const Step> steps, std::span<const Slot> slots) {
  return FindTailOf(steps, slots, std::nullopt);
}

void SetTails(std::span<StepList> lists) {
  const std::optional<Tail> last = FindTail(lists.back().steps, lists.back().slots);
  std::vector<std::optional<Tail>> tails;
  for (const StepList& list : lists) {
    if (!last) return;
    tails.push_back(FindTailOf(list.steps, list.slots, lists.back().slots[last->slot].value_index));
    if (!tails.back()) return;
  }
  for (size_t i = 0; i < lists.size(); ++i) lists[i].tail = tails[i];
}

}  // namespace swizzle
