// A sparse weight of bytes, each of 16 output channels in a lane of 32 bits: what kernels over kNhwc stream.
//
// Columns are counted tap by tap, the channels of a tap filled up to whole units of kUnit. A window is two neighbouring
// units; there are as many as units, less one. A step takes from one window up to four of a lane's columns: a vpermb
// brings these bytes to the lane, a vpdpbusd adds their products. So rows share windows, but no columns. Which window
// is next goes by the row that is furthest behind; the others may be up to a window ahead, which makes up for rows
// whose nonzeros are unevenly spread: of weights with 80 % zeros drawn at random 80 to 85 % of a step's bytes are used,
// with 90 % zeros about two thirds.
//
// Where a task's windows would leave the first cache, columns are cut into parts, whose windows are their own; sums
// wait between parts.
//
// 64 neighbouring output channels are a chunk. Within it channels are sorted by their nonzeros before they become
// lanes, since all lanes of a group take as many steps as its longest.
//
// Worked example, two rows of 96 columns: a of columns (1, 2, 70), b of (3, 40, 80, 90, 91, 95). The windows begin at
// columns 0 and 32.
//     step 0, window 0: a takes 1, 2, b 3, 40    step 1, window 1: a takes 70, b 80, 90, 91, 95
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_LANE_WEIGHT_H_
#define SWIZZLE_KERNELS_CPU_INT8_LANE_WEIGHT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/kernel_args.h"
#include "kernels/base/integers.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cpu {

// One vpermb and one vpdpbusd.
struct alignas(64) LaneStep {
  std::array<uint8_t, 64> bytes = {};   // of the window: four a lane
  std::array<int8_t, 64> weights = {};  // zeros where a lane has no more
};

// A part of neighbouring output channels' weights, as cells read it.
struct LaneChunk {
  static constexpr int64_t kLanes = 16, kGroups = 4, kRows = kLanes * kGroups;

  const LaneStep* steps = nullptr;            // those of a group after those of another
  const uint16_t* windows = nullptr;          // of each step; the part's first is 0
  std::array<uint32_t, kGroups> counts = {};  // steps of each group
  bool begins = true, ends = true;            // is the first part, the last
  const int32_t* start = nullptr;             // of each lane's sum
  const float* scale = nullptr;               // of each lane's sum
  const uint8_t* row_of_lane = nullptr;
  const uint8_t* byte_of_row = nullptr;  // where packing four groups leaves it: 16 (lane / 4) + 4 group + lane % 4
  int64_t first_row = 0, rows = 0;
};

class LaneWeight final : public PackedWeight {
 public:
  static constexpr int64_t kUnit = 32;

  // channels: of each tap. most_units: of a part; 2 or more.
  LaneWeight(const ByteWeight& weight, int64_t channels, int64_t most_units);

  size_t bytes() const override;
  int64_t parts() const { return parts_; }
  int64_t chunks() const { return static_cast<int64_t>(rows_.size()); }
  LaneChunk Chunk(int64_t part, int64_t chunk) const;

  // The units of a part are [FirstUnit(part), FirstUnit(part + 1)).
  int64_t FirstUnit(int64_t part) const { return units_ * part / parts_; }
  static int64_t UnitsOf(int64_t channels, int64_t taps) { return CeilDiv(channels, kUnit) * taps; }
  static int64_t WindowsOf(int64_t units) { return units > 1 ? units - 1 : 1; }

 private:
  using Lanes = std::array<std::span<const ByteWeight::Entry>, LaneChunk::kLanes>;

  struct ChunkRows {
    std::array<uint8_t, LaneChunk::kRows> row_of_lane = {}, byte_of_row = {};
    std::array<int32_t, LaneChunk::kRows> start = {};
    std::array<float, LaneChunk::kRows> scale = {};
    int64_t rows = 0;
  };
  struct PartSteps {
    size_t first = 0;
    std::array<uint32_t, LaneChunk::kGroups> counts = {};
  };

  void AddRows(const ByteWeight& weight, int64_t first_row);
  void AddSteps(const ByteWeight& weight, int64_t part, int64_t chunk);
  uint32_t AddGroup(Lanes lanes, int64_t first_unit, int64_t units);

  const int64_t units_, parts_;
  std::vector<LaneStep> steps_;
  std::vector<uint16_t> windows_;
  std::vector<ChunkRows> rows_;      // of each chunk
  std::vector<PartSteps> steps_of_;  // [part][chunk]
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_LANE_WEIGHT_H_
