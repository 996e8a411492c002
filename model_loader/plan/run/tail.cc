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

// All that there are, from the first value on.
std::vector<Tail> FindTails(std::span<const Step> steps, std::span<const Slot> slots) {
  std::vector<Tail> tails;
  for (int step = 1; step < static_cast<int>(steps.size()); ++step) {
    const std::optional<int> slot = OnlySlotAcross(slots, step);
    if (!slot || slots[*slot].storage != Storage{} || !IsSmall(slots[*slot])) continue;
    const auto large = [=](const Slot& written) { return written.first_step >= step && !IsSmall(written); };
    if (std::ranges::any_of(slots, large)) continue;
    tails.push_back({step, *slot, RowBytes(slots[*slot])});
  }
  return tails;
}

// The first one of the list that reads this value.
std::optional<Tail> TailOf(const StepList& list, int value_index) {
  for (const Tail& tail : FindTails(list.steps, list.slots)) {
    if (list.slots[tail.slot].value_index == value_index) return tail;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tail> FindTail(std::span<const Step> steps, std::span<const Slot> slots) {
  const std::vector<Tail> tails = FindTails(steps, slots);
  return tails.empty() ? std::nullopt : std::optional(tails.front());
}

void SetTails(std::span<StepList> lists) {
  for (const Tail& wanted : FindTails(lists.back().steps, lists.back().slots)) {
    std::vector<std::optional<Tail>> tails;
    for (const StepList& list : lists) tails.push_back(TailOf(list, lists.back().slots[wanted.slot].value_index));
    if (!std::ranges::all_of(tails, [](const auto& tail) { return tail.has_value(); })) continue;
    for (size_t i = 0; i < lists.size(); ++i) lists[i].tail = tails[i];
    return;
  }
}

}  // namespace swizzle
