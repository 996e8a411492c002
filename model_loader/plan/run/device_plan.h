// Plans on a device with memory of its own: inputs and outputs are staged in host memory, sizes are rounded, and runs
// are recorded and replayed.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/program.h"

namespace swizzle {

// A device's runner, for whoever asks where its time goes.
class DeviceSteps {
 public:
  virtual ~DeviceSteps() = default;
  // What each step adds to a recorded run without copies: what it takes with those before it, less what they take. Of
  // several runs the least; the second cache is empty before each. REQUIRES: a batch of this size has been run.
  virtual StatusOr<std::vector<absl::Duration>> TimeSteps(BatchSize size) = 0;
  virtual const StepList& ListFor(BatchSize size) const = 0;
};

// `backend` outlives the plan and its runners.
std::shared_ptr<const Plan> NewDevicePlan(DeviceBackend& backend, std::shared_ptr<const Program> program,
                                          PlanReport report);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_DEVICE_PLAN_H_
