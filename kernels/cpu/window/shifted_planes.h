// How a depthwise 3x3 convolution that keeps the plane's size is cut up where its outputs are counted through in the
// order of panels (shifted_planes-inl.h): parts of some panels by some channels, and where in them each unit of
// kPositionUnit positions lies; those that halve the plane (halved_planes.h) share ranges and places. Counts are floats
// unless named otherwise.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_SHIFTED_PLANES_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_SHIFTED_PLANES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {

// Ranges are multiples of so many channels, save the last.
inline constexpr int64_t kRangeChannels = 16;

// Where a unit of kPositionUnit positions lies.
struct UnitPlace {
  int64_t offset;          // of channel 0
  int64_t channel_stride;  // from one channel to the next
};

// Some neighbouring units of outputs, for some channels.
struct UnitRange {
  int64_t first_unit;  // of the batch
  int64_t units;
  int64_t first_channel;
  int64_t last_channel;
};

struct ShiftedPart {
  const UnitPlace* places;  // of the first unit; those of ShiftedReach() units before and behind the part stand beside
  UnitRange range;
};

// Units before or behind an output's that its taps may read.
inline int64_t ShiftedReach(const Problem& problem) { return problem.input.width / kPositionUnit + 2; }

// Of one thread, for the places of a part.
size_t ShiftedWorkspaceBytes(const Problem& problem);

// Writes the places of the units [first, first + count) of an activation. Units that there are not, which
// no tap inside a plane reads but of spare outputs, get the place of the nearest that there is.
void PlaceUnits(const Extent& extent, int64_t first, int64_t count, UnitPlace* places);

// Units of a range at most: what their places take is small, and a plane's rows are few where ranges meet.
inline constexpr int64_t kMaxRangeUnits = 64;

// The first range of items [begin, end), which count channels, kRangeChannels of them at a time, of one panel of the
// grid after another: as many whole panels as a range may have, or some channels of one. `taken`: its items.
UnitRange FirstRange(const PanelGrid& grid, int64_t channels, int64_t begin, int64_t end, int64_t* taken);

// Calls run(slot, range) on all threads so that every unit of every channel of an activation is covered once.
template <typename Run>
void ForEachUnitRange(const Extent& extent, CpuStream& stream, const Run& run) {
  const PanelGrid grid(extent.positions());
  const int64_t batches = CeilDiv(extent.channels, kRangeChannels);
  stream.ParallelRanges(grid.count() * batches, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t taken = 0; begin < end; begin += taken) {
      const UnitRange range = FirstRange(grid, extent.channels, begin, end, &taken);
      run(slot, range);
    }
  });
}

// Calls run(part) so that every unit of every channel is covered once.
template <typename Run>
void ForEachShiftedPart(const KernelArgs& args, CpuStream& stream, const Run& run) {
  const Problem& problem = *args.problem;
  const int64_t reach = ShiftedReach(problem);
  ForEachUnitRange(problem.output, stream, [&](int64_t slot, const UnitRange& range) {
    auto* const places = reinterpret_cast<UnitPlace*>(args.workspace.data() + slot * ShiftedWorkspaceBytes(problem));
    PlaceUnits(problem.input, range.first_unit - reach, range.units + 2 * reach, places);
    run(ShiftedPart{places + reach, range});
  });
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_SHIFTED_PLANES_H_
