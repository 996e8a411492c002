#include "model_loader/compiled/compile.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "model_loader/plan/planner.h"
#include "model_loader/regions/declared_outputs.h"

namespace swizzle {
namespace {

StatusOr<Compiled> CompileNetwork(Network network, const CompilePlace& place) {
  Compiled compiled;
  for (Backend* const backend : place.backends) {
    // The last one may have the weights; none is there twice.
    // NOLINTNEXTLINE(bugprone-use-after-move)
    Network its = backend == place.backends.back() ? std::move(network) : network;
    const PlanOptions options = place.options(*backend);
    if (place.tunable) {
      SWIZZLE_ASSIGN_OR_RETURN(TunablePlan made, MakeTunablePlan(std::move(its), *backend, options));
      compiled.models.emplace_back(std::move(made.plan));
      compiled.tuners.push_back(std::move(made.tuner));
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(its), *backend, options));
      compiled.models.emplace_back(std::move(plan));
      compiled.tuners.emplace_back();
    }
  }
  return compiled;
}

class ProgramCompiler {
 public:
  ProgramCompiler(ProgramModel model, const CompilePlace& place) : model_(std::move(model)), place_(place) {}

  Compiled Run() {
    Backend& cpu = place_.devices.cpu();
    for (Backend* const gpu : place_.backends) {
      if (gpu == &cpu) break;
      regions::TunableRegions its = RegionsOn(*gpu, std::get<DeviceBackend*>(gpu->kind()));
      const regions::RegionalProgram& there = its.program;
      const bool is_there = there.on_device != nullptr;
      const bool decides = compiled_.models.empty();
      if (place_.prefers_devices ? is_there || decides : is_there && there.interpreted_nodes() == 0) {
        Take(std::move(its));
      }
      // The others are spared the planning.
      if (decides && (compiled_.models.empty() || !is_there)) break;
    }
    if (compiled_.models.empty()) Take(RegionsOn(cpu, nullptr));
    return std::move(compiled_);
  }

 private:
  regions::TunableRegions RegionsOn(const Backend& backend, DeviceBackend* device) const {
    const regions::RegionBackends backends(place_.devices.cpu(), device, place_.devices.functions());
    const PlanOptions options = place_.options(backend);
    if (place_.tunable) return regions::PlanTunableRegions(model_.program, backends, options, place_.requests);
    return {regions::PlanRegions(model_.program, backends, options, place_.requests), nullptr};
  }
  void Take(regions::TunableRegions made) {
    compiled_.models.emplace_back(std::move(made.program), model_.reason, place_.devices.cpu());
    compiled_.tuners.push_back(std::move(made.tuner));
  }

  const ProgramModel model_;
  const CompilePlace& place_;
  Compiled compiled_;
};

}  // namespace

Status DeclareOutputs(RunnableModel& model, Backend& host, int threads) {
  auto* const unplanned = std::get_if<ProgramModel>(&model);
  if (unplanned == nullptr) return absl::OkStatus();
  SWIZZLE_ASSIGN_OR_RETURN(unplanned->program,
                           regions::WithDeclaredOutputs(std::move(unplanned->program), host, threads));
  return absl::OkStatus();
}

StatusOr<Compiled> Compile(RunnableModel model, const CompilePlace& place) {
  if (auto* const loaded = std::get_if<LoadedModel>(&model)) return CompileNetwork(std::move(loaded->network), place);
  return ProgramCompiler(std::move(std::get<ProgramModel>(model)), place).Run();
}

PlanOptions OptionsForRuns(const ModelInterface& model, std::span<const TensorView> inputs, int64_t rows, int threads) {
  PlanOptions options{.threads = threads, .tuning_budget = absl::ZeroDuration()};
  options.max_batch = std::max<int64_t>(model.fixed_batch > 0 ? model.fixed_batch : rows, 1);
  if (!model.has_sequences) return options;
  int64_t length = 1;
  for (const TensorView& input : inputs) length = std::max(length, input.shape.size() == 2 ? input.shape[1] : 1);
  options.max_tokens = options.max_batch * length;
  return options;
}

StatusOr<CompiledModel> CompileFor(const Devices& devices, RunnableModel model, const PlanOptions& options) {
  const std::vector<Backend*> backends = {&devices.main()};
  const CompilePlace place{.devices = devices,
                           .backends = backends,
                           .options = [&](const Backend&) { return options; },
                           .prefers_devices = true};
  SWIZZLE_ASSIGN_OR_RETURN(Compiled compiled, Compile(std::move(model), place));
  return std::move(compiled.models.front());
}

}  // namespace swizzle
