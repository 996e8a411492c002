#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "kernels/devices.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/graph_file.h"
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

// What calibration data showed of values, by their names in the model.
using NamedValues = std::map<std::string, SeenValue>;

// Values of a network among these. In regions a value's name has its number behind it.
SeenValues ValuesAmong(const NamedValues& named, const Network& network) {
  SeenValues seen;
  for (int i = 0; i < static_cast<int>(network.values.size()); ++i) {
    const std::string& name = network.values[static_cast<size_t>(i)].name;
    auto found = named.find(name);
    if (found == named.end()) found = named.find(name.substr(0, name.rfind('#')));
    if (found != named.end()) seen[i] = found->second;
  }
  return seen;
}

class Inspector {
 public:
  Inspector(const InspectCommand& command, const Devices& devices, bool with_pictures, TuningCache* tuning_cache)
      : command_(command), devices_(devices), with_pictures_(with_pictures), tuning_cache_(tuning_cache) {}

  StatusOr<ModelReport> Run(RunnableModel model) {
    report_.model = command_.model.filename().string();
    report_.container = ContainerOf(model);
    report_.features = devices_.main().features_text();
    auto* const loaded = std::get_if<LoadedModel>(&model);
    SWIZZLE_RETURN_IF_ERROR(loaded != nullptr ? Prepare(*loaded) : Prepare(std::get<ProgramModel>(model)));
    const PlanOptions options{.max_batch = command_.max_batch,
                              .threads = command_.threads,
                              .precision = command_.precision,
                              .tuning_budget = command_.tuning_budget,
                              .tuning_cache = tuning_cache_,
                              .weight_budget = command_.weight_budget,
                              .keep_weights = true};
    SWIZZLE_ASSIGN_OR_RETURN(const CompiledModel compiled, CompileFor(devices_, std::move(model), options));
    for (const std::shared_ptr<const Plan>& plan : compiled.plans()) {
      SWIZZLE_ASSIGN_OR_RETURN(report_.parts.emplace_back(), PartOf(*plan));
    }
    if (compiled.regional() != nullptr) SWIZZLE_RETURN_IF_ERROR(Describe(compiled));
    return std::move(report_);
  }

 private:
  bool measures() const { return command_.tuning_budget > absl::ZeroDuration(); }

  Status Prepare(LoadedModel& model) {
    report_.producer = model.network.producer;
    report_.fusions = model.fusions;
    report_.costs = CostsOfFormats(model.network);
    FuseFor(devices_.main(), model.network);  // values go by the plan's layers
    if (command_.calibration.empty()) return {};
    SWIZZLE_ASSIGN_OR_RETURN(seen_, SeeValues(model.network, command_.calibration, devices_.cpu(), command_.threads));
    KeepZeros(seen_, model.network);
    return {};
  }

  Status Prepare(ProgramModel& model) {
    report_.producer = model.program->graph().producer;
    SWIZZLE_RETURN_IF_ERROR(CheckComputes(devices_.main(), command_.precision));
    constant_bytes_ = model.program->weight_bytes();
    if (model.container != "safetensors") {
      SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel onnx, OpenOnnxModel(command_.model));
      SWIZZLE_ASSIGN_OR_RETURN(report_.costs, CostsOfFormats(onnx));
    }
    if (command_.calibration.empty()) return {};
    SWIZZLE_ASSIGN_OR_RETURN(named_, SeeValues(*model.program, command_.calibration, devices_.cpu(), command_.threads));
    std::map<std::string, InputZeros> zeros;
    for (const auto& [name, of] : named_) zeros[name] = of.zeros;
    model.program = model.program->WithZeros(zeros);
    return {};
  }

  StatusOr<PartReport> PartOf(const Plan& plan) const {
    const Network& network = plan.network();
    PartReport part{.plan = plan.report(), .structures = {}};
    part.max_batch = plan.max_batch();
    part.arena_bytes = static_cast<int64_t>(plan.arena_bytes());
    for (const Layer& layer : network.layers) {
      part.structures.push_back(StructureOf(network, layer));
      if (!with_pictures_) continue;
      part.pictures.push_back(layer.weight < 0 ? WeightPicture() : DrawWeight(network.weights[layer.weight]));
    }
    // Of the calibration data, or what the model was packed with.
    Backend* const gpu = HasHostMemory(devices_.main()) ? nullptr : &devices_.main();
    if (command_.calibration.empty()) {
      SWIZZLE_ASSIGN_OR_RETURN(part.sparse_inputs,
                               SeeSparseInputs(network, DrawSeenValues(network), measures() ? gpu : nullptr));
    } else {
      SWIZZLE_ASSIGN_OR_RETURN(part.sparse_inputs,
                               SeeSparseInputs(network, named_.empty() ? seen_ : ValuesAmong(named_, network), gpu));
    }
    return part;
  }

  Status Describe(const CompiledModel& compiled) {
    const regions::RegionalProgram& regional = *compiled.regional();
    for (const auto& again : regional.again) {
      const auto place = std::ranges::find(regional.regions, again) - regional.regions.begin();
      ++report_.parts[static_cast<size_t>(place)].places;
    }
    report_.program = ProgramReport{regional, compiled.reason(), constant_bytes_, {}, command_.schedule};
    // A device takes no times of parts.
    if (!measures() || regional.on_device != nullptr || regional.regions.empty()) return {};
    SWIZZLE_ASSIGN_OR_RETURN(const auto stream, devices_.cpu().NewStream(command_.threads));
    SWIZZLE_ASSIGN_OR_RETURN(report_.program->times, regions::TimeRegions(regional, *stream));
    return {};
  }

  const InspectCommand& command_;
  const Devices& devices_;
  const bool with_pictures_;
  TuningCache* const tuning_cache_;
  ModelReport report_;
  SeenValues seen_;    // of one plan
  NamedValues named_;  // of a model in regions
  int64_t constant_bytes_ = 0;
};

std::string MeasuringText(const RunnableModel& model, const InspectCommand& command, const Devices& devices) {
  const auto* const loaded = std::get_if<LoadedModel>(&model);
  return Concat("measuring kernels for ",
                loaded != nullptr ? Concat(loaded->network.layers.size(), " layers") : "regions", " on ",
                devices.main().device_name(), ", about ", absl::FormatDuration(command.tuning_budget), " at most ...");
}

StatusOr<Inspection> InspectOn(const InspectCommand& command, RunnableModel model, const Devices& devices,
                               bool with_page, TuningCache* tuning_cache, Terminal& terminal) {
  StatusOr<ModelReport> report;
  {
    const ProgressLine progress(terminal, MeasuringText(model, command, devices));
    report = Inspector(command, devices, with_page, tuning_cache).Run(std::move(model));
  }
  if (!report.ok()) return Annotate(report.status(), command.model.string());
  return Inspection{command.json ? ReportJson(*report) : ReportText(*report),
                    with_page ? ReportPage(ReportObject(*report)) : std::string()};
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
