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

Inspection Shown(std::string text, const nlohmann::ordered_json& report, bool with_page) {
  return {std::move(text), with_page ? ReportPage(report) : std::string()};
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

StatusOr<ModelReport> ReportOf(const InspectCommand& command, LoadedModel model, const Devices& devices, bool with_page,
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
  DescribeWeights(model.network, with_page, report);
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

StatusOr<Inspection> InspectRegions(const InspectCommand& command, const ProgramModel& model, const Devices& devices,
                                    bool with_page, TuningCache* tuning_cache) {
  if (!command.calibration.empty()) {
    return Unimplemented(command.model.string(), ": --calibration is for models that are planned whole; this one runs ",
                         "in regions");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckComputes(devices.main(), command.precision));
  const PlanOptions options{.threads = command.threads,
                            .precision = command.precision,
                            .tuning_budget = command.tuning_budget,
                            .tuning_cache = tuning_cache,
                            .weight_budget = command.weight_budget};
  const regions::RegionalProgram regional =
      regions::PlanRegions(model.program, {devices.cpu(), devices.main_gpu(), devices.functions()}, options);
  SWIZZLE_ASSIGN_OR_RETURN(const auto times, TimesOf(command, regional, devices.cpu()));
  const std::string name = command.model.filename().string();
  std::string text = command.json ? FallbackJson(name, model, regional, times)
                                  : Concat(name, ": ", FallbackText(model, regional, times), RegionLayersText(regional),
                                           command.schedule ? ScheduleText(regional) : "");
  return Shown(std::move(text), FallbackObject(name, model, regional, times), with_page);
}

StatusOr<Inspection> InspectOn(const InspectCommand& command, RunnableModel runnable, const Devices& devices,
                               bool with_page, TuningCache* tuning_cache, Terminal& terminal) {
  if (const auto* unplanned = std::get_if<ProgramModel>(&runnable)) {
    return InspectRegions(command, *unplanned, devices, with_page, tuning_cache);
  }
  auto& model = std::get<LoadedModel>(runnable);
  StatusOr<ModelReport> report;
  {
    const ProgressLine progress(terminal, Concat("measuring kernels for ", model.network.layers.size(), " layers on ",
                                                 devices.main().device_name(), ", about ",
                                                 absl::FormatDuration(command.tuning_budget), " at most ..."));
    report = ReportOf(command, std::move(model), devices, with_page, tuning_cache);
  }
  SWIZZLE_RETURN_IF_ERROR(report);
  return Shown(command.json ? ReportJson(*report) : ReportText(*report), ReportObject(*report), with_page);
}

}  // namespace

StatusOr<Inspection> Inspect(const InspectCommand& command, bool with_page, TuningCache* known, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, LoadRunnableModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  std::optional<TuningCache> of_file;
  if (known == nullptr && !command.tuning_cache.empty()) {
    of_file.emplace(command.tuning_cache, devices.main());
    SWIZZLE_RETURN_IF_ERROR(of_file->status());
    known = &*of_file;
  }
  StatusOr<Inspection> inspection = InspectOn(command, std::move(runnable), devices, with_page, known, terminal);
  if (inspection.ok() && of_file) SWIZZLE_RETURN_IF_ERROR(of_file->Save());
  return inspection;
}

StatusOr<Outcome> Execute(const InspectCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const Inspection inspection, Inspect(command, !command.page.empty(), nullptr, terminal));
  if (!command.page.empty()) {
    SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.page));
    SWIZZLE_RETURN_IF_ERROR(WriteFileAtomically(command.page, std::as_bytes(std::span(inspection.page))));
  }
  terminal.out << inspection.text;
  return Outcome::kOk;
}

}  // namespace swizzle::pack
