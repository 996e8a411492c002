#include "server/model/planned_model.h"

#include <utility>
#include <variant>

#include "model_loader/plan/planner.h"

namespace swizzle {
namespace {

regions::TunableRegions RegionsOf(const RegionsPlace& place, std::shared_ptr<const interpreter::Program> program,
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

StatusOr<std::vector<regions::TunableRegions>> RegionsIn(const RegionsPlace& place,
                                                         const std::shared_ptr<const interpreter::Program>& program,
                                                         InstanceKind kind, const regions::ExpectedRequests& requests) {
  Backend& cpu = place.devices.cpu();
  std::vector<regions::TunableRegions> made;
  for (Backend* const gpu : place.backends) {
    if (gpu == &cpu) break;
    regions::TunableRegions its = RegionsOf(place, program, *gpu, requests, std::get<DeviceBackend*>(gpu->kind()));
    const regions::RegionalProgram& there = its.program;
    if (there.on_device != nullptr && (kind == InstanceKind::kGpu || there.interpreted_nodes() == 0)) {
      made.push_back(std::move(its));
    } else if (made.empty() && kind == InstanceKind::kGpu) {
      return Unimplemented("'instance_group.kind' is KIND_GPU, but the model runs on the CPU alone: ",
                           there.not_on_device);
    } else if (made.empty()) {
      break;  // the others are spared the planning
    }
  }
  if (made.empty()) made.push_back(RegionsOf(place, program, cpu, requests, nullptr));
  return made;
}

}  // namespace swizzle
