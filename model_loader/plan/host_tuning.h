// What is timed on a whole program, on a trial plan of the host: serial steps and the micro-batch.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_HOST_TUNING_H_
#define SWIZZLE_MODEL_LOADER_PLAN_HOST_TUNING_H_

#include <cstdint>

#include "kernels/backend/backend.h"
#include "model_loader/plan/assemble.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/run/host_plan.h"

namespace swizzle {

struct HostTuning {
  SerialSteps serial;
  int64_t micro_batch = 0;  // see PlanReport
  int suspect = 0;          // measurements that were disturbed
  bool complete = true;     // nothing is left to measure
};

// With shares of the tuning budget, on runners of their own, which are gone when it returns.
// `report`: of the plan to be, so far.
StatusOr<HostTuning> TuneOnHost(HostBackend& backend, const Assembly& assembly, const PlanReport& report,
                                const PlanOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_HOST_TUNING_H_
