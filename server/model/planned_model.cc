#include "server/model/planned_model.h"

#include <utility>
#include <variant>

#include "model_loader/plan/planner.h"

namespace swizzle {
namespace {

regions::TunableRegions RegionsOf(const RegionsPlace& place, std::shared_ptr<const fallback::Program> program,
                                  const Backend& backend, const regions::ExpectedRequests& requests,
                                  DeviceBackend* device) {
  const regions::RegionBackends backends(place.devices.cpu(), device, place.devices.functions());
  PlanOptions options = place.options(backend);
  if (place.tunable) return regions::PlanTunableRegions(std::move(program), backends, options, requests);
  options.tuning_budget = absl::ZeroDuration();
  return {regions::PlanRegions(std::move(program), backends, options, requests), nullptr};
}

}  // namespace

StatusOr<TunablePlan> PlanOn(Backend& backend, Network network, PlanOptions options, bool tunable) {
  if (tunable) return MakeTunablePlan(std::move(network), backend, options);
  options.tuning_budget = absl::ZeroDuration();
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(network), backend, options));
  return TunablePlan{std::move(plan), nullptr, nullptr};
}

StatusOr<regions::TunableRegions> RegionsIn(const RegionsPlace& place, std::shared_ptr<const fallback::Program> program,
                                            InstanceKind kind, const regions::ExpectedRequests& requests) {
  Backend& cpu = place.devices.cpu();
  Backend& first = *place.backends[0];
  if (&first == &cpu) return RegionsOf(place, std::move(program), cpu, requests, nullptr);
  regions::TunableRegions made = RegionsOf(place, program, first, requests, std::get<DeviceBackend*>(first.kind()));
  if (kind == InstanceKind::kGpu) {
    if (made.program.on_device != nullptr) return made;
    return Unimplemented("'instance_group.kind' is KIND_GPU, but the model runs on the CPU alone: ",
                         made.program.not_on_device);
  }
  if (made.program.on_device != nullptr && made.program.interpreted_nodes() == 0) return made;
  made = {};
  return RegionsOf(place, std::move(program), cpu, requests, nullptr);
}

}  // namespace swizzle
