#include "kernels/cpu/window/shifted_planes.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {

static_assert(kMaxRangeUnits % (kMaxPanelWidth / kPositionUnit) == 0);

size_t ShiftedWorkspaceBytes(const Problem& problem) {
  const int64_t units = kMaxRangeUnits + 2 * ShiftedReach(problem);
  const size_t bytes = static_cast<size_t>(units) * sizeof(UnitPlace);
  return RoundUp(bytes, kBufferAlignment);
}

void PlaceUnits(const Extent& extent, int64_t first, int64_t count, UnitPlace* places) {
  const PanelGrid grid(extent.positions());
  const int64_t last = grid.padded_positions() / kPositionUnit - 1;
  const auto position = [&](int64_t unit) { return std::clamp<int64_t>(unit, 0, last) * kPositionUnit; };
  int64_t panel = grid.PanelOf(position(first));
  for (int64_t unit = first; unit < first + count; ++unit) {
    if (grid.Begin(panel + 1) <= position(unit)) ++panel;
    const int64_t begin = grid.Begin(panel);
    *places++ = {begin * extent.channels + position(unit) - begin, grid.Width(panel)};
  }
}

UnitRange FirstRange(const PanelGrid& grid, int64_t channels, int64_t begin, int64_t end, int64_t* taken) {
  constexpr int64_t kMaxPanels = kMaxRangeUnits / (kMaxPanelWidth / kPositionUnit);
  const int64_t batches = CeilDiv(channels, kRangeChannels);
  const int64_t panel = begin / batches;
  const int64_t first_batch = begin % batches;
  const bool whole = first_batch == 0 && end - begin >= batches;
  const int64_t panels = whole ? std::min(kMaxPanels, (end - begin) / batches) : 1;
  const int64_t last_batch = whole ? batches : std::min(batches, first_batch + end - begin);
  *taken = panels * (last_batch - first_batch);
  const int64_t first_unit = grid.Begin(panel) / kPositionUnit;
  return {first_unit, grid.Begin(panel + panels) / kPositionUnit - first_unit, first_batch * kRangeChannels,
          std::min(last_batch * kRangeChannels, channels)};
}

}  // namespace swizzle::cpu
