#include "model_loader/regions/row_planner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/planner.h"
#include "model_loader/plan/weight_facts.h"
#include "model_loader/regions/largest_batch.h"

namespace swizzle::regions {
namespace {

Network WithoutWeights(Network& network) {
  std::vector<Weight> weights = std::exchange(network.weights, {});
  Network bare = network;
  network.weights = std::move(weights);
  return bare;
}

}  // namespace

PlanOptions OptionsOf(const Network& network, Form form, interpreter::Place place, int64_t vectors,
                      PlanOptions options) {
  if (form == Form::kSequences) {
    const BatchSize most = LargestSequences(network, place);
    options.max_batch = most.rows;
    options.max_tokens = most.tokens;
    return options;
  }
  options.max_batch = LargestBatch(network, form, place);
  if (form == Form::kVectors) options.measured_batches = {vectors, kMostRows};
  if (form == Form::kVectors && place == interpreter::Place::kDevice) options.measured_batches.push_back(8 * kMostRows);
  return options;
}

RowPlanner::RowPlanner(Excerpt excerpt, Backend& backend, const Network& network, Settings settings)
    : excerpt_(std::move(excerpt)), backend_(backend), settings_([&] {
        settings.options.tuning_budget = absl::ZeroDuration();
        settings.options.progress = nullptr;
        return std::move(settings);
      }()) {
  if (settings_.place != interpreter::Place::kHost || !GoesByExtentRules(excerpt_)) return;
  const RowShapes others = OtherRows(excerpt_.survey, excerpt_.region);
  if (others.empty()) return;
  StatusOr<Network> other = NetworkOf(excerpt_, others);
  if (!other.ok() || ContentHash(*other) != settings_.content) return;
  PlanMaterials materials(*std::move(other));
  FuseFor(backend_, materials.network);
  rules_ = ExtentRules::Learn(network, materials.network, PaddingsOf(excerpt_));
}

PlanOptions RowPlanner::OptionsFor(const Network& network, int64_t batch) const {
  PlanOptions options = OptionsOf(network, excerpt_.region.form, settings_.place, settings_.vectors, settings_.options);
  options.max_batch = std::min(options.max_batch, batch);
  return options;
}

StatusOr<std::shared_ptr<const Plan>> RowPlanner::PlanFor(const RowShapes& rows, int64_t batch,
                                                          const Blueprint& held) const {
  if (std::optional<Network> network = rules_ ? rules_->Apply(held.network(), rows) : std::nullopt) {
    const PlanOptions options = OptionsFor(*network, batch);
    auto plan = held.MakePlan(*std::move(network), options);
    if (plan.ok()) return plan;
  }
  SWIZZLE_ASSIGN_OR_RETURN(Network network, NetworkOf(excerpt_, rows));
  const PlanOptions options = OptionsFor(network, batch);
  const bool alike = ContentHash(network) == settings_.content;
  PlanMaterials materials(std::move(network));
  if (alike) {
    FuseFor(backend_, materials.network);
    auto plan = held.MakePlan(WithoutWeights(materials.network), options);
    if (plan.ok()) return plan;
    materials.weights = held.weights();
  }
  materials.other_planes = alike;
  return swizzle::MakePlan(materials, backend_, options);
}

}  // namespace swizzle::regions
