// Plans one region: how many rows at a time, and, for rows that are not as in the survey, from what its own plan holds.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_ROW_PLANNER_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_ROW_PLANNER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/backend/backend.h"
#include "model_loader/interpreter/values/array.h"
#include "model_loader/network/extent_rules.h"
#include "model_loader/plan/blueprint.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/regions/excerpt.h"
#include "model_loader/regions/shape_plans.h"

namespace swizzle::regions {

// `vectors`: how many of them a batch usually has.
PlanOptions OptionsOf(const Network& network, Form form, interpreter::Place place, int64_t vectors,
                      PlanOptions options);

// Immutable and thread-safe. The backend outlives it.
class RowPlanner {
 public:
  struct Settings {
    interpreter::Place place = interpreter::Place::kHost;
    int64_t vectors = 0;   // see OptionsOf
    PlanOptions options;   // of the region's own plan
    uint64_t content = 0;  // ContentHash of its network
  };
  // `network`: the region's, as its plan runs it.
  RowPlanner(Excerpt excerpt, Backend& backend, const Network& network, Settings settings);

  // Of batches of up to so many rows. Weights, and the kernels that were measured with them, are those of `held`, the
  // region's own plan's. Extents come by arithmetic where that is known to be right, else from the region's graph,
  // which is lowered again.
  StatusOr<std::shared_ptr<const Plan>> PlanFor(const RowShapes& rows, int64_t batch, const Blueprint& held) const;
  // Whether extents come by arithmetic.
  bool has_rules() const { return rules_.has_value(); }

 private:
  PlanOptions OptionsFor(const Network& network, int64_t batch) const;

  const Excerpt excerpt_;
  Backend& backend_;
  const Settings settings_;
  std::optional<ExtentRules> rules_;
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_ROW_PLANNER_H_
