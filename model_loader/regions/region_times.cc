#include "model_loader/regions/region_times.h"

#include <algorithm>
#include <memory>

#include "model_loader/interpreter/memory/block_range.h"
#include "model_loader/regions/free_sizes.h"
#include "model_loader/regions/schedule.h"

namespace swizzle::regions {
namespace {

using interpreter::TurnTime;

// Of one run.
StatusOr<std::vector<TurnTime>> TimesOf(const interpreter::Program& program, std::span<const TensorView> inputs,
                                        Stream& stream, const interpreter::Limits& limits,
                                        const std::shared_ptr<interpreter::BlockStore>& blocks) {
  std::vector<TurnTime> times;
  interpreter::RunSupplies supplies;
  supplies.blocks = blocks;
  supplies.times = &times;
  SWIZZLE_RETURN_IF_ERROR(program.Run(inputs, stream, limits, nullptr, supplies).status());
  return times;
}

// A node has several where its elements are moved when others need them (interpreter/values/moved.h).
void AddTime(const TurnTime& turn, std::vector<RegionTimes::NodeTime>& nodes) {
  const auto found = std::ranges::find(nodes, turn.first_node, &RegionTimes::NodeTime::node);
  if (found == nodes.end()) {
    nodes.push_back({turn.first_node, turn.time});
  } else {
    found->time += turn.time;
  }
}

// What the regions were planned of, with one row where those are free.
RunInputs OfOneRow(const interpreter::Program& program, RunInputs inputs) {
  for (const FreeDimension& dimension : FreeDimensionsOf(program.inputs())) {
    for (const auto& [input, axis] : dimension.places) {
      if (dimension.counts_rows) inputs.shapes[input][axis] = 1;
    }
  }
  return inputs;
}

}  // namespace

absl::Duration RegionTimes::Interpreted() const {
  absl::Duration sum;
  for (const NodeTime& node : interpreted) sum += node.time;
  return sum;
}

absl::Duration RegionTimes::All() const {
  absl::Duration sum = attention + recurrent + Interpreted();
  for (const absl::Duration time : regions) sum += time;
  return sum;
}

StatusOr<RegionTimes> TimeRegions(const RegionalProgram& regional, Stream& stream, const interpreter::Limits& limits) {
  constexpr int kRuns = 5;
  const interpreter::Program& program = *regional.program;
  const auto blocks = std::make_shared<interpreter::BlockRange>();
  StatusOr<std::vector<TurnTime>> least = Unimplemented("its regions were planned of no run");
  RegionTimes times;
  for (const RunInputs& tried : {OfOneRow(program, regional.surveyed), regional.surveyed}) {
    std::vector<std::vector<std::byte>> held;
    SWIZZLE_ASSIGN_OR_RETURN(const auto inputs, FilledInputs(program, tried, limits, held));
    least = TimesOf(program, inputs, stream, limits, blocks);  // which makes what the runs after it find made
    if (least.ok()) least = TimesOf(program, inputs, stream, limits, blocks);
    for (int run = 1; run < kRuns && least.ok(); ++run) {
      SWIZZLE_ASSIGN_OR_RETURN(const auto again, TimesOf(program, inputs, stream, limits, blocks));
      for (size_t t = 0; t < least->size(); ++t) (*least)[t].time = std::min((*least)[t].time, again[t].time);
    }
    if (!least.ok()) continue;
    times.inputs = tried.shapes;
    break;
  }
  SWIZZLE_RETURN_IF_ERROR(least);
  times.regions.resize(regional.regions.size());
  for (const TurnTime& turn : *least) {
    size_t region = 0;
    switch (KindOf(regional, turn.part, &region)) {
      case StepKind::kRegion:
        times.regions[region] += turn.time;
        break;
      case StepKind::kRecurrence:
        times.recurrent += turn.time;
        break;
      case StepKind::kAttention:
        times.attention += turn.time;
        break;
      case StepKind::kNode:
        AddTime(turn, times.interpreted);
        break;
    }
  }
  return times;
}

}  // namespace swizzle::regions
