// From a model as it was read to plans on devices, and to what tunes these when there is time. Free functions,
// thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_PLANNED_MODEL_H_
#define SWIZZLE_SERVER_MODEL_PLANNED_MODEL_H_

#include <functional>
#include <memory>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/base/status.h"
#include "kernels/devices.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/plan_tuner.h"
#include "model_loader/regions/plan_regions.h"
#include "server/model/model.h"

namespace swizzle {

// Kernels are chosen by what is known now; of the options, the budget is nobody's. tunable: what knows more later comes
// with the plan, else no tuner does.
StatusOr<TunablePlan> PlanOn(Backend& backend, Network network, PlanOptions options, bool tunable);

// What regions are planned for and by. All of it outlives what comes of it.
struct RegionsPlace {
  const Devices& devices;
  const std::vector<Backend*>& backends;               // that the model may run on: GPUs, or the CPU
  std::function<PlanOptions(const Backend&)> options;  // of each
  bool tunable = false;
};

// On each GPU where `kind` asks for them, or leaves it open and the host would have nothing to compute; else on the
// CPU, once. The first GPU decides; of the others those are left out that don't do as much. UNIMPLEMENTED where it asks
// for GPUs, and the model runs on the CPU alone.
StatusOr<std::vector<regions::TunableRegions>> RegionsIn(const RegionsPlace& place,
                                                         const std::shared_ptr<const interpreter::Program>& program,
                                                         InstanceKind kind, const regions::ExpectedRequests& requests);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_PLANNED_MODEL_H_
