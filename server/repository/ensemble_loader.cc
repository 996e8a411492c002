#include "server/repository/ensemble_loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/batching/ensemble_batcher.h"
#include "server/config/label_files.h"
#include "server/config/model_config.h"
#include "server/config/served_spec.h"
#include "server/repository/started_model.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

// It has no weights, and its steps' sessions run it.
class EnsembleModel final : public Model {
 public:
  EnsembleModel(ModelSpec spec, std::string steps) : spec_(std::move(spec)) {
    ModelFacts facts;
    facts.properties["steps"] = std::move(steps);
    facts_ = std::make_shared<const ModelFacts>(std::move(facts));
  }

  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override { return facts_; }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock&) override {
    return Unimplemented("an ensemble runs in the sessions of its steps");
  }

 private:
  const ModelSpec spec_;
  std::shared_ptr<const ModelFacts> facts_;
};

std::vector<const ModelSpec*> SpecsOf(const std::vector<ModelTable::Serving>& steps) {
  std::vector<const ModelSpec*> specs;
  for (const auto& step : steps) specs.push_back(&step->model->spec());
  return specs;
}

// Outputs without labels of their own have those of the models that make them.
void InheritLabels(const EnsembleGraph& graph, const std::vector<const ModelSpec*>& steps, ModelSpec& spec) {
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const auto [step, output] = MakerOf(graph, i);
    if (spec.outputs[i].labels == nullptr) spec.outputs[i].labels = steps[step]->outputs[output].labels;
  }
}

std::string NamesOf(const std::vector<EnsembleStep>& steps) {
  std::string names;
  for (const EnsembleStep& step : steps) names += Concat(names.empty() ? "" : ", ", step.model);
  return names;
}

std::vector<EnsembleMember> MembersOf(const std::vector<ModelTable::Serving>& steps) {
  std::vector<EnsembleMember> members;
  for (const auto& step : steps) {
    members.push_back({step, step->model.get(), step->batcher.get(), step->metrics.get()});
  }
  return members;
}

}  // namespace

StatusOr<std::vector<ModelTable::Serving>> FindSteps(const std::vector<EnsembleStep>& steps, const ModelTable& table) {
  std::vector<ModelTable::Serving> serving;
  for (size_t i = 0; i < steps.size(); ++i) {
    StatusOr<ModelTable::Serving> found = table.Find(steps[i].model, steps[i].VersionText());
    if (!found.ok()) {
      return MakeError(StatusCode::kFailedPrecondition, "step ", i + 1,
                       " of the ensemble: ", std::string(found.status().message()));
    }
    serving.push_back(*std::move(found));
  }
  return serving;
}

StatusOr<std::shared_ptr<ServingModel>> LoadEnsemble(const VersionFolder& folder, const LoadingPlace& place) {
  const Instant start = place.options.clock->Now();
  const inference::ModelConfig& config = *folder.config;
  LogConfigNotices(folder.name, config, place.options);
  const std::vector<EnsembleStep> steps = StepsOf(config);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<ModelTable::Serving> serving, FindSteps(steps, place.table));
  SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, EnsembleSpec(config, folder.name, folder.version));
  const std::vector<const ModelSpec*> specs = SpecsOf(serving);
  StatusOr<EnsembleGraph> graph = ConnectSteps(spec, steps, specs);
  if (!graph.ok()) return Annotate(graph.status(), "config.pbtxt");
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<ConfigNotice> notices, ReadLabels(folder.place.folder(), config, spec));
  LogNotices(folder.name, notices);
  InheritLabels(*graph, specs, spec);
  SWIZZLE_RETURN_IF_ERROR(folder.check_unchanged());
  const auto model = std::make_shared<EnsembleModel>(std::move(spec), NamesOf(steps));
  const absl::Duration load_time = place.options.clock->Now() - start;
  SWIZZLE_RETURN_IF_ERROR(CheckTensorNames(model->spec()));
  std::shared_ptr<ServingModel> started = StartServing(model, config, load_time, place);
  started->batcher =
      NewEnsembleBatcher(model, *std::move(graph), MembersOf(serving), *place.options.clock, started->metrics.get());
  for (const auto& step : serving) started->depth = std::max(started->depth, step->depth + 1);
  KeepAnswers(place, *started);
  LogLoaded(*model, load_time);
  return started;
}

}  // namespace swizzle
