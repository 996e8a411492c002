// Plans for what the optimised plan does not take whole: each layer with constant weights, in whatever graph, runs by
// the kernels of plans, and only what lies between is interpreted.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/fallback/executor.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/plan_tuner.h"
#include "model_loader/regions/planned_region.h"

namespace swizzle::regions {

// A program with its regions. Value type; what it holds is immutable.
struct RegionalProgram {
  std::shared_ptr<const fallback::Program> program;
  std::vector<std::shared_ptr<const PlannedRegion>> regions;  // in the order of their first nodes
  std::string unplanned;                                      // why there are none; empty where there are
  std::vector<std::string> refusals;                          // why regions were not planned as a whole

  int layers() const;        // of all regions
  std::string Text() const;  // "regions: 12 planned (49 layers), 37 interpreted nodes"
  // Weights of regions as kernels hold them, and what is interpreted.
  int64_t weight_bytes() const;
};

// Kernels are chosen as the options say, regions sharing the tuning budget evenly; `backend`, which outlives the
// result, is the CPU's. What cannot be planned stays as it is: a program whose shapes cannot be known has no regions.
RegionalProgram PlanRegions(std::shared_ptr<const fallback::Program> program, Backend& backend,
                            const PlanOptions& options, const fallback::Limits& limits = {});

struct TunableRegions {
  RegionalProgram program;
  std::unique_ptr<PlanTuner> tuner;  // null: all was known; replaces plans of `program` itself
};

// The same, but nothing is measured now; of the options, the tuning budget and the gate are the tuner's. `backend` and
// the tuning cache outlive both.
TunableRegions PlanTunableRegions(std::shared_ptr<const fallback::Program> program, Backend& backend,
                                  const PlanOptions& options, const fallback::Limits& limits = {});

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_
