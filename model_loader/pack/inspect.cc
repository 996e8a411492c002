#include <optional>
#include <ostream>
#include <span>

#include "kernels/devices.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/fallback_report.h"
#include "model_loader/pack/model_report.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/report_page.h"
#include "model_loader/pack/sparse_inputs.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/planner.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

Structure StructureOf(const Network& network, const Layer& layer) {
  if (layer.weight < 0 || !HasValues(network.weights[layer.weight].format())) return {};
  const int64_t taps = IsWindowed(layer.op) ? layer.window().taps() : 1;
  return DetectStructure(network.weights[layer.weight].matrix, taps);
}

// A plan drops its network's weights, so this comes before it.
void DescribeWeights(const Network& network, bool pictures, ModelReport& report) {
  for (const Layer& layer : network.layers) {
    report.structures.push_back(StructureOf(network, layer));
    if (!pictures) continue;
    report.pictures.push_back(layer.weight < 0 ? WeightPicture() : DrawWeight(network.weights[layer.weight]));
  }
}

Status WritePage(const nlohmann::ordered_json& report, const std::filesystem::path& file) {
  const std::string page = ReportPage(report);
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(file));
  return WriteFileAtomically(file, std::as_bytes(std::span(page)));
}

// Of the calibration data, or what the model was packed with; plans of the network then know of them.
StatusOr<SparseInputs> SeeZeros(const InspectCommand& command, const Devices& devices, Network& network) {
  Backend* const gpu = HasHostMemory(devices.main()) ? nullptr : &devices.main();
  if (command.calibration.empty()) {
    const bool measures = command.tuning_budget > absl::ZeroDuration();
    return SeeSparseInputs(network, DrawSeenValues(network), measures ? gpu : nullptr);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const SeenValues seen,
                           SeeValues(network, command.calibration, devices.cpu(), command.threads));
  KeepZeros(seen, network);
  return SeeSparseInputs(network, seen, gpu);
}

StatusOr<ModelReport> Inspect(const InspectCommand& command, LoadedModel model, const Devices& devices,
                              TuningCache* tuning_cache) {
  Backend& backend = devices.main();
  ModelReport report;
  report.model = command.model.filename().string();
  report.container = std::move(model.container);
  report.producer = model.network.producer;
  report.features = backend.features_text();
  report.fusions = std::move(model.fusions);
  report.costs = CostsOfFormats(model.network);
  FuseLayers(model.network);  // as the plan will: structures go by its layers
  if (HasHostMemory(backend)) FuseHostFunctions(model.network);
  DescribeWeights(model.network, !command.page.empty(), report);
  SWIZZLE_ASSIGN_OR_RETURN(report.sparse_inputs, SeeZeros(command, devices, model.network));
  const PlanOptions options{.max_batch = command.max_batch,
                            .threads = command.threads,
                            .precision = command.precision,
                            .tuning_budget = command.tuning_budget,
                            .tuning_cache = tuning_cache,
                            .weight_budget = command.weight_budget};
  const auto plan = MakePlan(std::move(model.network), backend, options);
  if (!plan.ok()) return Annotate(plan.status(), command.model.string());
  report.max_batch = (*plan)->max_batch();
  report.arena_bytes = static_cast<int64_t>((*plan)->arena_bytes());
  report.plan = (*plan)->report();
  return report;
}

// Nothing where nothing is to be measured, or nothing is planned, or it runs on a device, which takes no times of
// parts.
StatusOr<std::optional<regions::RegionTimes>> TimesOf(const InspectCommand& command,
                                                      const regions::RegionalProgram& regional, Backend& backend) {
  const bool measures = command.tuning_budget > absl::ZeroDuration() && regional.on_device == nullptr;
  if (!measures || regional.regions.empty()) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, backend.NewStream(command.threads));
  SWIZZLE_ASSIGN_OR_RETURN(auto times, regions::TimeRegions(regional, *stream));
  return std::optional(std::move(times));
}

StatusOr<Outcome> InspectRegions(const InspectCommand& command, const FallbackModel& model, Terminal& terminal) {
  if (!command.calibration.empty()) {
    return Unimplemented(command.model.string(), ": --calibration is for models that are planned whole; this one runs ",
                         "in regions");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  SWIZZLE_RETURN_IF_ERROR(CheckComputes(devices.main(), command.precision));
  std::optional<TuningCache> cache;
  if (!command.tuning_cache.empty()) {
    cache.emplace(command.tuning_cache, devices.main());
    SWIZZLE_RETURN_IF_ERROR(cache->status());
  }
  const PlanOptions options{.threads = command.threads,
                            .precision = command.precision,
                            .tuning_budget = command.tuning_budget,
                            .tuning_cache = cache ? &*cache : nullptr,
                            .weight_budget = command.weight_budget};
  const regions::RegionalProgram regional =
      regions::PlanRegions(model.program, {devices.cpu(), devices.main_gpu(), devices.functions()}, options);
  if (cache) SWIZZLE_RETURN_IF_ERROR(cache->Save());
  SWIZZLE_ASSIGN_OR_RETURN(const auto times, TimesOf(command, regional, devices.cpu()));
  const std::string name = command.model.filename().string();
  if (!command.page.empty()) {
    SWIZZLE_RETURN_IF_ERROR(WritePage(FallbackObject(name, model, regional, times), command.page));
  }
  terminal.out << (command.json ? FallbackJson(name, model, regional, times)
                                : Concat(name, ": ", FallbackText(model, regional, times), RegionLayersText(regional)));
  return Outcome::kOk;
}

}  // namespace

StatusOr<Outcome> Execute(const InspectCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, LoadRunnableModel(command.model));
  if (const auto* unplanned = std::get_if<FallbackModel>(&runnable)) {
    return InspectRegions(command, *unplanned, terminal);
  }
  auto& model = std::get<LoadedModel>(runnable);
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  Backend* const backend = &devices.main();
  std::optional<TuningCache> tuning_cache;
  if (!command.tuning_cache.empty()) {
    tuning_cache.emplace(command.tuning_cache, *backend);
    SWIZZLE_RETURN_IF_ERROR(tuning_cache->status());
  }
  StatusOr<ModelReport> report;
  {
    const ProgressLine progress(
        terminal, Concat("measuring kernels for ", model.network.layers.size(), " layers on ", backend->device_name(),
                         ", about ", absl::FormatDuration(command.tuning_budget), " at most ..."));
    report = Inspect(command, std::move(model), devices, tuning_cache ? &*tuning_cache : nullptr);
  }
  SWIZZLE_RETURN_IF_ERROR(report);
  if (tuning_cache) SWIZZLE_RETURN_IF_ERROR(tuning_cache->Save());
  if (!command.page.empty()) SWIZZLE_RETURN_IF_ERROR(WritePage(ReportObject(*report), command.page));
  terminal.out << (command.json ? ReportJson(*report) : ReportText(*report));
  return Outcome::kOk;
}

}  // namespace swizzle::pack
