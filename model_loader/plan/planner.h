// Makes plans: kernels and layouts are chosen (choose/), weights prepared, and what runs (run/) is built of them.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Takes the network (its weights are dropped as kernels prepare theirs). `backend` must outlive the plan.
// RESOURCE_EXHAUSTED if the arena cannot be had; UNIMPLEMENTED if no kernel accepts a layer.
StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, Backend& backend, const PlanOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PLANNER_H_
