// How a depthwise 3x3 convolution that keeps the plane's size is cut up where its outputs are counted through in the
// order of panels (shifted_planes-inl.h): parts of some panels by some channels, and where in them each unit of
// kPositionUnit positions lies. Counts are floats unless named otherwise.
#ifndef SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_H_
#define SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/kernel_table.h"

namespace swizzle::cpu {

// Channels that are computed together: what a row of the plane and its neighbours take of them fits the first cache.
inline constexpr int64_t kShiftedChannels = 16;

// Where a unit of kPositionUnit positions lies.
struct UnitPlace {
  int64_t offset;          // of channel 0
  int64_t channel_stride;  // from one channel to the next
};

// Some neighbouring units of outputs, for some channels.
struct ShiftedPart {
  const UnitPlace* places;  // of the first unit; those of ShiftedReach() units before and behind the part stand beside
  int64_t first_unit;       // of the batch
  int64_t units;
  int64_t first_channel;
  int64_t last_channel;
};

// Units before or behind an output's that its taps may read.
inline int64_t ShiftedReach(const Problem& problem) { return problem.input.width / kPositionUnit + 2; }

// Of one thread, for the places of a part.
size_t ShiftedWorkspaceBytes(const Problem& problem);

// Writes the places of the units [first, first + count) of an activation. Units that there are not, whose positions no
// tap inside a plane reads, get the place of the nearest that there is.
void PlaceUnits(const Extent& extent, int64_t first, int64_t count, UnitPlace* places);

// The panels and channels, in units of kShiftedChannels, of one part: as many whole panels as fit a part, or some
// channels of one.
struct ShiftedRange {
  int64_t panel;
  int64_t panels;
  int64_t first_batch;
  int64_t last_batch;
};

// The first part of items [begin, end), which count channels, batches of them at a time, of one panel after another.
ShiftedRange FirstRange(int64_t begin, int64_t end, int64_t batches);

// Calls run(part) so that every unit of every channel is covered once.
template <typename Run>
void ForEachShiftedPart(const KernelArgs& args, CpuStream& stream, const Run& run) {
  const Problem& problem = *args.problem;
  const PanelGrid grid(problem.input.positions());
  const int64_t batches = (problem.input.channels + kShiftedChannels - 1) / kShiftedChannels;
  const int64_t reach = ShiftedReach(problem);
  stream.ParallelRanges(grid.count() * batches, [&](int64_t slot, int64_t begin, int64_t end) {
    auto* const places =
        reinterpret_cast<UnitPlace*>(args.workspace.data() + slot * ShiftedWorkspaceBytes(problem));
    while (begin < end) {
      const ShiftedRange range = FirstRange(begin, end, batches);
      begin += range.panels * (range.last_batch - range.first_batch);
      const int64_t first = grid.Begin(range.panel) / kPositionUnit;
      const int64_t units = grid.Begin(range.panel + range.panels) / kPositionUnit - first;
      PlaceUnits(problem.input, first - reach, units + 2 * reach, places);
      run(ShiftedPart{places + reach, first, units, range.first_batch * kShiftedChannels,
                      std::min(range.last_batch * kShiftedChannels, problem.input.channels)});
    }
  });
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_H_
