#include "model_loader/plan/run/arena.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

bool Overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

std::vector<size_t> LargestFirst(std::span<const Lifetime> lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  return order;
}

// Buffers that are alive at different times, each with as much of it below the middle as above.
struct Middle {
  size_t reach = 0;  // of the largest, to both sides
  std::vector<size_t> buffers = {};
};

size_t Half(const Lifetime& lifetime) { return RoundUp((lifetime.bytes + 1) / 2, kSlotAlignment); }

// Each buffer in this order around the free middle that has to reach further by the least for it.
ArenaLayout PlaceAroundMiddles(std::span<const Lifetime> lifetimes, const std::vector<size_t>& order) {
  std::vector<Middle> middles;
  for (const size_t index : order) {
    const size_t half = Half(lifetimes[index]);
    Middle* best = nullptr;
    for (Middle& middle : middles) {
      const auto overlaps = [&](size_t other) { return Overlap(lifetimes[index], lifetimes[other]); };
      if (std::ranges::any_of(middle.buffers, overlaps)) continue;
      if (best == nullptr || std::max(middle.reach, half) - middle.reach < std::max(best->reach, half) - best->reach) {
        best = &middle;
      }
    }
    if (best == nullptr) best = &middles.emplace_back();
    best->reach = std::max(best->reach, half);
    best->buffers.push_back(index);
  }
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  for (const Middle& middle : middles) {
    for (const size_t index : middle.buffers) {
      layout.offsets[index] = layout.bytes + middle.reach - Half(lifetimes[index]);
    }
    layout.bytes += 2 * middle.reach;
  }
  return layout;
}

// The first to live first needs the fewest middles, the largest first the smallest.
ArenaLayout PlaceInHalves(std::span<const Lifetime> lifetimes) {
  std::vector<size_t> in_time(lifetimes.size());
  std::iota(in_time.begin(), in_time.end(), size_t{0});
  std::ranges::stable_sort(in_time, {}, [&](size_t index) { return lifetimes[index].first; });
  ArenaLayout by_size = PlaceAroundMiddles(lifetimes, LargestFirst(lifetimes));
  ArenaLayout by_time = PlaceAroundMiddles(lifetimes, in_time);
  return by_time.bytes < by_size.bytes ? by_time : by_size;
}

ArenaLayout PlacePacked(std::span<const Lifetime> lifetimes) {
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<size_t> placed;  // by rising offset
  for (size_t index : LargestFirst(lifetimes)) {
    const size_t bytes = RoundUp(lifetimes[index].bytes, kSlotAlignment);
    size_t offset = 0;
    for (size_t other : placed) {
      if (!Overlap(lifetimes[index], lifetimes[other])) continue;
      if (offset + bytes <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + RoundUp(lifetimes[other].bytes, kSlotAlignment));
    }
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; }),
                  index);
  }
  return layout;
}

}  // namespace

ArenaLayout PlaceBuffers(std::span<const Lifetime> lifetimes, ArenaOrder order) {
  ArenaLayout packed = PlacePacked(lifetimes);
  if (order == ArenaOrder::kPacked) return packed;
  ArenaLayout halves = PlaceInHalves(lifetimes);
  const size_t most = packed.bytes + packed.bytes / 8;
  return halves.bytes <= most ? halves : packed;
}

}  // namespace swizzle
