#include "kernels/cpu/shifted_planes.h"

namespace swizzle::cpu {
namespace {

// Panels of a part at most: what its places take is small, and a plane's rows are few where parts meet.
constexpr int64_t kPartPanels = 16;

}  // namespace

size_t ShiftedWorkspaceBytes(const Problem& problem) {
  const int64_t units = kPartPanels * (kMaxPanelWidth / kPositionUnit) + 2 * ShiftedReach(problem);
  const size_t bytes = static_cast<size_t>(units) * sizeof(UnitPlace);
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
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

ShiftedRange FirstRange(int64_t begin, int64_t end, int64_t batches) {
  const int64_t panel = begin / batches, batch = begin % batches;
  if (batch == 0 && end - begin >= batches) return {panel, std::min(kPartPanels, (end - begin) / batches), 0, batches};
  return {panel, 1, batch, std::min(batches, batch + end - begin)};
}

}  // namespace swizzle::cpu
