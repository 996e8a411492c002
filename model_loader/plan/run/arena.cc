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

}  // namespace

ArenaLayout PlaceBuffers(std::span<const Lifetime> lifetimes) {
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

}  // namespace swizzle
