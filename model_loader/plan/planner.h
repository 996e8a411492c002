// Makes plans: kernels and layouts are chosen (choose/), weights prepared, and what runs (run/) is built of them.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_

#include <memory>
#include <optional>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/prepared_weights.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

class Blueprint;

// UNIMPLEMENTED, which every plan then is, where the backend does not compute in this precision.
Status CheckComputes(const Backend& backend, Precision precision);

// Takes the network (its weights are dropped as kernels prepare theirs). `backend` must outlive the plan.
// RESOURCE_EXHAUSTED if the arena cannot be had; UNIMPLEMENTED if no kernel accepts a layer.
StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, Backend& backend, const PlanOptions& options);

// What plans of one network are made of, where there may be several: a plan shares the forms of weights that it has in
// common with the one before. Single-owner.
struct PlanMaterials {
  explicit PlanMaterials(Network of);

  Network network;                         // with the layers of plans
  bool keep = false;                       // the network's weights, for plans to come
  std::optional<PreparedWeights> weights;  // of the plan that was made last, or of `other_planes`
  bool leaves_blueprint = false;
  std::shared_ptr<const Blueprint> blueprint;  // of the plan that was made last, where it leaves one
  // That plan is of a network which differs from this one in the planes of its values alone. Layers of which it holds
  // forms that do for this one's planes, too, read these.
  bool other_planes = false;
};

// The same, of these materials.
StatusOr<std::shared_ptr<const Plan>> MakePlan(PlanMaterials& materials, Backend& backend, const PlanOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_
