// Plans on a device with memory of its own: inputs and outputs are staged in host memory, sizes are rounded, and runs
// are recorded and replayed.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/program.h"

namespace swizzle {

// `backend` outlives the plan and its runners.
std::shared_ptr<const Plan> NewDevicePlan(DeviceBackend& backend, std::shared_ptr<const Program> program,
                                          PlanReport report);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_
