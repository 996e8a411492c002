#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "kernels/devices.h"
#include "model_loader/calibration/graph_weights.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/pack/advice.h"
#include "model_loader/pack/advice_report.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/progress_line.h"
#include "model_loader/pack/report_page.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/planner.h"
#include "model_loader/regions/plan_regions.h"
#include "model_loader/safetensors/checkpoint.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

constexpr double kSparsities[] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95};

std::vector<double> SparsitiesOf(const AdviseCommand& command) {
  std::vector<double> sparsities(std::begin(kSparsities), std::end(kSparsities));
  if (std::ranges::find(sparsities, command.sparsity) == sparsities.end()) sparsities.push_back(command.sparsity);
  std::ranges::sort(sparsities);
  return sparsities;
}

PruneMethod MethodOf(const AdviseCommand& command, const Devices& devices) {
  const bool vectors = !HasHostMemory(devices.main()) && command.precision != Precision::kFloat32;
  return command.method.value_or(vectors ? PruneMethod::kVectorWise : PruneMethod::kMagnitude);
}

// Plans of one model at several sparsities.
class Sampler {
 public:
  Sampler(const AdviseCommand& command, const Devices& devices, TuningCache& cache, Terminal& terminal)
      : command_(command), devices_(devices), cache_(cache), line_(terminal, "Reading the model ...") {}

  StatusOr<std::vector<SparsitySample>> Take(RunnableModel model) {
    // Pruned layers are those of plans.
    if (auto* const planned = std::get_if<LoadedModel>(&model)) FuseFor(devices_.main(), planned->network);
    std::vector<SparsitySample> samples;
    for (const double sparsity : SparsitiesOf(command_)) {
      sparsity_ = sparsity;
      PruneOptions options{.method = MethodOf(command_, devices_),
                           .vector_rows = command_.vector_rows,
                           .limit = command_.limit,
                           .sparsity = sparsity,
                           .skip = command_.skip,
                           .alike_zeros = true};
      options.progress = [&](const std::string& layer) { return line_.Replace(Concat("Pruning ", layer, " ...")); };
      Pruner pruner(std::move(options));
      SparsitySample sample{sparsity, {}, {}};
      SWIZZLE_ASSIGN_OR_RETURN(sample.parts, std::holds_alternative<LoadedModel>(model)
                                                 ? PlanWhole(std::get<LoadedModel>(model).network, pruner)
                                                 : PlanInRegions(std::get<ProgramModel>(model), pruner));
      for (const PruneRecord& record : pruner.records()) {
        if (!record.skipped) sample.removed_squares.emplace(record.name, record.removed_squares);
      }
      samples.push_back(std::move(sample));
    }
    return samples;
  }

 private:
  PlanOptions Options() {
    PlanOptions options{.max_batch = command_.max_batch,
                        .threads = command_.threads,
                        .precision = command_.precision,
                        .tuning_budget = command_.tuning_budget,
                        .tuning_cache = &cache_};
    options.progress = [this](const PlanProgress& at) {
      if (at.stage != PlanProgress::Stage::kMeasuring) return;
      status_.Update(line_.Replace(
          Concat("Measuring at ", std::lround(100 * sparsity_), " % zeros: layer ", at.done, " of ", at.all, " ...")));
    };
    return options;
  }

  StatusOr<std::vector<PlannedPart>> PlanWhole(Network network, Pruner& pruner) {
    PruneNetwork(network, pruner);
    SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
    SWIZZLE_ASSIGN_OR_RETURN(const auto plan, MakePlan(std::move(network), devices_.main(), Options()));
    SWIZZLE_RETURN_IF_ERROR(status_);
    return std::vector<PlannedPart>{{plan->report()}};
  }

  StatusOr<std::vector<PlannedPart>> PlanInRegions(const ProgramModel& model, Pruner& pruner) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto program, PrunedProgram(model, pruner));
    SWIZZLE_RETURN_IF_ERROR(pruner.CheckResult());
    const regions::RegionalProgram regional =
        regions::PlanRegions(program, {devices_.cpu(), devices_.main_gpu(), devices_.functions()}, Options());
    SWIZZLE_RETURN_IF_ERROR(status_);
    if (regional.regions.empty()) return Unimplemented(regional.ZerosText());
    std::vector<PlannedPart> parts;
    for (const auto& region : regional.regions) {
      const auto plan = region->plan();
      const auto again =
          std::ranges::count_if(regional.again, [&](const auto& other) { return other->plan() == plan; });
      parts.push_back({plan->report(), 1 + again});
    }
    return parts;
  }

  StatusOr<std::shared_ptr<const interpreter::Program>> PrunedProgram(const ProgramModel& model, Pruner& pruner) const {
    const auto prune = [&](const OnnxWeight& weight, std::span<float> elements) {
      pruner.Prune({weight.names, weight.shape, weight.outputs_last, weight.taps()}, elements);
    };
    if (model.container == "safetensors") {
      return interpreter::ReadProgram(command_.model, interpreter::Nodes::kNeeded, [&](Graph& graph) {
        std::vector<NamedWeight> weights = WeightsOf(graph);
        for (NamedWeight& weight : weights) prune(weight.weight, weight.elements);
        SetWeights(weights, graph);
        return Status();
      });
    }
    SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel file, ReadOnnxModel(command_.model));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> pruned, RewriteOnnxWeights(file.bytes, prune, file.options));
    return interpreter::ReadProgram(std::span<const std::byte>(pruned));
  }

  const AdviseCommand& command_;
  const Devices& devices_;
  TuningCache& cache_;
  ProgressLine line_;
  double sparsity_ = 0.0;
  Status status_;  // whether somebody who is told of progress ended it
};

StatusOr<Advice> AdviseOn(const AdviseCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel model, LoadRunnableModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  TuningCache cache(command.tuning_cache, devices.main());
  SWIZZLE_RETURN_IF_ERROR(cache.status());
  Advice advice;
  advice.model = command.model.filename().string();
  advice.container = ContainerOf(model);
  advice.in_regions = std::holds_alternative<ProgramModel>(model);
  if (const auto* whole = std::get_if<LoadedModel>(&model)) {
    advice.producer = whole->network.producer;
    advice.counts_tokens = whole->network.sequences.has_value();
  }
  advice.features = devices.main().features_text();
  const PruneMethod method = MethodOf(command, devices);
  advice.method = PruneMethodName(method);
  if (method != PruneMethod::kMagnitude && method != PruneMethod::kNOfM) advice.vector_rows = command.vector_rows;
  advice.max_batch = command.max_batch;
  std::vector<SparsitySample> samples;
  {
    Sampler sampler(command, devices, cache, terminal);
    StatusOr<std::vector<SparsitySample>> taken = sampler.Take(std::move(model));
    if (!taken.ok()) return Annotate(taken.status(), command.model.string());
    samples = *std::move(taken);
  }
  advice.device = samples.front().parts.front().plan.device;
  advice.threads = samples.front().parts.front().plan.threads;
  const Status advised = Advise(std::move(samples), command.sparsity, advice);
  if (!advised.ok()) return Annotate(advised, command.model.string());
  if (!command.tuning_cache.empty()) SWIZZLE_RETURN_IF_ERROR(cache.Save());
  return advice;
}

}  // namespace

StatusOr<Outcome> Execute(const AdviseCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const Advice advice, AdviseOn(command, terminal));
  if (!command.page.empty()) {
    const std::string page = ReportPage(AdviceObject(advice));
    SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.page));
    SWIZZLE_RETURN_IF_ERROR(WriteFileAtomically(command.page, std::as_bytes(std::span(page))));
  }
  terminal.out << (command.json ? AdviceJson(advice) : AdviceText(advice));
  return Outcome::kOk;
}

}  // namespace swizzle::pack
