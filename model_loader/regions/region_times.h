// How long regions take in a run, and what lies between them: of one row of zeros, which nothing else runs beside.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_REGION_TIMES_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_REGION_TIMES_H_

#include <vector>

#include "absl/time/time.h"
#include "model_loader/regions/plan_regions.h"

namespace swizzle::regions {

// Value type.
struct RegionTimes {
  struct NodeTime {
    int node = 0;  // of the program's graph
    absl::Duration time;
  };

  std::vector<Shape> inputs;            // of these shapes
  std::vector<absl::Duration> regions;  // in the order of RegionalProgram::regions, those alike together
  absl::Duration attention;             // all between regions
  absl::Duration recurrent;             // nodes, with the regions that they alone run, which have no time of their own
  std::vector<NodeTime> interpreted;    // in the order in which they run

  absl::Duration Interpreted() const;
  absl::Duration All() const;
};

// Of several runs the least, turn by turn. Errors are those of the survey, or of a run.
StatusOr<RegionTimes> TimeRegions(const RegionalProgram& regional, Stream& stream,
                                  const interpreter::Limits& limits = {});

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_REGION_TIMES_H_
