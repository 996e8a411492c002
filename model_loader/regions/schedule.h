// The order in which a program with regions runs, for those who read it: one step for each region at each place,
// attention, recurrent node, and node between them.
//
// Pure functions; steps are value types, whose indices are of the program's graph.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SCHEDULE_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model_loader/regions/plan_regions.h"

namespace swizzle::regions {

enum class StepKind : uint8_t { kNode, kRegion, kAttention, kRecurrence };

struct ScheduledStep {
  StepKind kind = StepKind::kNode;
  size_t region = 0;         // of RegionalProgram::regions, where it is one
  std::vector<int> nodes;    // in order
  std::vector<int> inputs;   // values that it reads, but for constants
  std::vector<int> outputs;  // values that it makes for others
  bool is_steady = false;    // it runs once for all requests of the same shapes
  bool on_device = false;
};

// What a part of the program is; of nodes that are none, null, kNode. `region` is set for regions, those alike sharing
// one.
StepKind KindOf(const RegionalProgram& regional, const interpreter::Part* part, size_t* region);

std::vector<ScheduledStep> ScheduleOf(const RegionalProgram& regional);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SCHEDULE_H_
