#include "kernels/cpu/int8/lane_weight.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/base/check.h"

namespace swizzle::cpu {
namespace {

using Entry = ByteWeight::Entry;

constexpr int64_t kBytes = 4;  // of a lane
constexpr int64_t kLanes = LaneChunk::kLanes;

// With columns where they stand when each tap's channels fill whole units.
ByteWeight FilledUp(ByteWeight weight, int64_t channels) {
  for (std::vector<Entry>& row : weight.entries) {
    for (Entry& entry : row) {
      const int64_t tap = entry.column / channels, channel = entry.column % channels;
      entry.column = static_cast<int32_t>(tap * RoundUp(channels, LaneWeight::kUnit) + channel);
    }
  }
  return weight;
}

// Those of columns [begin, end).
std::span<const Entry> Between(std::span<const Entry> row, int64_t begin, int64_t end) {
  const auto at = [&](int64_t column) { return std::ranges::lower_bound(row, column, {}, &Entry::column); };
  return {at(begin), at(end)};
}

}  // namespace

LaneWeight::LaneWeight(const ByteWeight& weight, int64_t channels, int64_t most_units)
    : units_(UnitsOf(channels, weight.cols / channels)), parts_(CeilDiv(units_, most_units)) {
  SWIZZLE_CHECK(units_ <= std::numeric_limits<uint16_t>::max());
  const ByteWeight filled = FilledUp(weight, channels);
  for (int64_t row = 0; row < filled.rows; row += LaneChunk::kRows) AddRows(filled, row);
  for (int64_t part = 0; part < parts_; ++part) {
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) AddSteps(filled, part, chunk);
  }
}

void LaneWeight::AddRows(const ByteWeight& weight, int64_t first_row) {
  ChunkRows chunk;
  chunk.rows = std::min(LaneChunk::kRows, weight.rows - first_row);
  const auto order = chunk.row_of_lane.begin();
  std::iota(order, order + chunk.rows, uint8_t{0});
  std::ranges::stable_sort(order, order + chunk.rows, {},
                           [&](uint8_t row) { return weight.entries[first_row + row].size(); });
  for (int64_t i = 0; i < chunk.rows; ++i) {
    const int64_t row = order[i], group = i / kLanes, lane = i % kLanes;
    chunk.start[i] = weight.start[first_row + row];
    chunk.scale[i] = weight.scale[first_row + row];
    chunk.byte_of_row[row] = static_cast<uint8_t>(lane / kBytes * 16 + group * kBytes + lane % kBytes);
  }
  rows_.push_back(chunk);
}

void LaneWeight::AddSteps(const ByteWeight& weight, int64_t part, int64_t chunk) {
  PartSteps made{.first = steps_.size()};
  const int64_t begin = FirstUnit(part), end = FirstUnit(part + 1);
  for (int64_t group = 0; group < LaneChunk::kGroups; ++group) {
    Lanes lanes = {};
    for (int64_t lane = 0; lane < std::min(kLanes, rows_[chunk].rows - group * kLanes); ++lane) {
      const int64_t row = chunk * LaneChunk::kRows + rows_[chunk].row_of_lane[group * kLanes + lane];
      lanes[lane] = Between(weight.entries[row], begin * kUnit, end * kUnit);
    }
    made.counts[group] = AddGroup(lanes, begin, end - begin);
  }
  steps_of_.push_back(made);
}

uint32_t LaneWeight::AddGroup(Lanes lanes, int64_t first_unit, int64_t units) {
  for (uint32_t count = 0;; ++count) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const auto& lane : lanes) {
      if (!lane.empty()) first = std::min<int64_t>(first, lane.front().column);
    }
    if (first == std::numeric_limits<int64_t>::max()) return count;
    const int64_t window = std::min(first / kUnit - first_unit, WindowsOf(units) - 1);
    const int64_t begin = (first_unit + window) * kUnit;
    LaneStep step;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      std::span<const Entry>& left = lanes[lane];
      for (int64_t byte = lane * kBytes; byte < (lane + 1) * kBytes; ++byte) {
        if (left.empty() || left.front().column >= begin + 2 * kUnit) break;
        step.bytes[byte] = static_cast<uint8_t>(left.front().column - begin);
        step.weights[byte] = left.front().value;
        left = left.subspan(1);
      }
    }
    steps_.push_back(step);
    windows_.push_back(static_cast<uint16_t>(window));
  }
}

size_t LaneWeight::bytes() const {
  return steps_.size() * sizeof(LaneStep) + windows_.size() * sizeof(uint16_t) + rows_.size() * sizeof(ChunkRows) +
         steps_of_.size() * sizeof(PartSteps);
}

LaneChunk LaneWeight::Chunk(int64_t part, int64_t chunk) const {
  const ChunkRows& rows = rows_[chunk];
  const PartSteps& steps = steps_of_[part * chunks() + chunk];
  return {.steps = steps_.data() + steps.first,
          .windows = windows_.data() + steps.first,
          .counts = steps.counts,
          .begins = part == 0,
          .ends = part + 1 == parts_,
          .start = rows.start.data(),
          .scale = rows.scale.data(),
          .row_of_lane = rows.row_of_lane.data(),
          .byte_of_row = rows.byte_of_row.data(),
          .first_row = chunk * LaneChunk::kRows,
          .rows = rows.rows};
}

}  // namespace swizzle::cpu
