#include "model_loader/plan/blueprint.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <tuple>

#include "model_loader/plan/choose/conversion.h"
#include "model_loader/plan/choose/measured_sizes.h"
#include "model_loader/plan/run/host_plan.h"

namespace swizzle {
namespace {

int Log2(int64_t number) { return std::bit_width(static_cast<uint64_t>(number)); }

int64_t InputElements(const Network& network) {
  int64_t elements = 0;
  for (const NetworkPort& port : network.inputs) elements += network.values[port.value].elements();
  return elements;
}

bool HasSameLayers(const Network& a, const Network& b) {
  return std::ranges::equal(a.layers, b.layers, [](const Layer& one, const Layer& other) {
    return one.op == other.op && one.inputs == other.inputs && one.output == other.output &&
           one.epilogue == other.epilogue && (one.weight < 0) == (other.weight < 0);
  });
}

// What conversions between layers take, by estimates: of each value, but the row is the same for all that may be
// whole numbers alike.
class ConversionEstimates {
 public:
  ConversionEstimates(const Backend& backend, RunSettings settings, const PlanThroughput& throughput,
                      std::span<const BatchSize> sizes)
      : backend_(backend), settings_(settings), throughput_(throughput), sizes_(sizes) {}

  std::vector<double> Of(const NetworkValue& value, Storage from, Storage to) {
    const auto wholes = value.AsWholeNumbers();
    const auto [row, is_new] = rows_.try_emplace({from, to, wholes ? wholes->dtype : DType::kFloat32});
    if (is_new) row->second = FindConversion(backend_, value, from, to, settings_);
    const Kernel* kernel = row->second;
    std::vector<double> times;
    for (size_t b = 0; kernel != nullptr && b < sizes_.size(); ++b) {
      const Problem problem = ConversionProblem(value, sizes_[b], settings_);
      if (b == 0 && !kernel->accepts(AsRowSolves(*kernel, problem))) return times;
      times.push_back(EstimateMicroseconds(*kernel, problem, nullptr, throughput_.plan));
    }
    return times;
  }

 private:
  const Backend& backend_;
  const RunSettings settings_;
  const PlanThroughput& throughput_;
  const std::span<const BatchSize> sizes_;
  std::map<std::tuple<Storage, Storage, DType>, const Kernel*> rows_;  // null: none does
};

std::vector<BucketChoice> BucketsOf(const LayerCandidates& rows, const std::vector<std::vector<int>>& choices,
                                    std::span<const BatchSize> sizes, int64_t most) {
  std::vector<int64_t> counts;
  for (const BatchSize size : sizes) counts.push_back(size.rows);
  const std::vector<int64_t> limits = choices.size() == 1 ? std::vector<int64_t>{most} : BucketLimits(counts, most);
  std::vector<BucketChoice> buckets;
  for (size_t b = 0; b < choices.size(); ++b) {
    BucketChoice& bucket = buckets.emplace_back(BucketChoice{limits[b], {}});
    for (size_t i = 0; i < rows.size(); ++i) {
      bucket.layers.push_back(rows[i][static_cast<size_t>(choices[b][i])]);
      bucket.layers.back().microseconds.clear();
    }
  }
  return buckets;
}

// For batches of up to `most`.
void SetLargest(int64_t most, std::vector<BucketChoice>& buckets) {
  const auto last = std::ranges::find_if(buckets, [&](const BucketChoice& bucket) { return bucket.most >= most; });
  if (last != buckets.end()) buckets.erase(last + 1, buckets.end());
  buckets.back().most = most;
}

// No kernel solves such a layer, whatever its extents.
bool OnlyRenames(const Layer& layer) { return TraitsOf(layer.op).Has(OpTraits::kOnlyRenames); }

// What nobody asks for of a plan that is one of many.
void DropNames(Network& network) {
  for (NetworkValue& value : network.values) value.name = std::string();
  for (Layer& layer : network.layers) layer.name = std::string();
}

}  // namespace

Blueprint::Blueprint(Backend& backend, RunSettings settings, Network network, std::vector<WeightShape> shapes,
                     const LayerCandidates& rows, PreparedWeights weights)
    : backend_(backend),
      settings_(settings),
      throughput_(PlanThroughput::Of(backend, settings.precision)),
      network_(std::move(network)),
      shapes_(std::move(shapes)),
      weights_(std::move(weights)) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Candidate>& kept = rows_.emplace_back();
    for (Candidate row : rows[i]) {
      if (row.norm >= 0 || row.input.pooled || row.output.pooled) continue;
      if (TakesWeight(row) && !weights_.FollowHeld(i, row)) continue;
      row.microseconds.clear();
      kept.push_back(std::move(row));
    }
  }
}

std::vector<Candidate> Blueprint::Accepting(const Network& network, size_t layer) const {
  if (OnlyRenames(network.layers[layer])) return rows_[layer];
  std::vector<Candidate> rows;
  const Problem problem = LayerProblem(network, network.layers[layer], 1, settings_.threads);
  for (const Candidate& row : rows_[layer]) {
    if (row.kernel == nullptr || row.kernel->accepts(AsRowSolves(*row.kernel, problem))) rows.push_back(row);
  }
  return rows;
}

StatusOr<Blueprint::Decision> Blueprint::Decide(const Network& network, int64_t max_batch,
                                                const PlanOptions& options) const {
  const std::vector<BatchSize> sizes =
      MeasuredSizes(network, max_batch, MeasuredCounts(network, max_batch, /*device=*/false, options.measured_batches));
  LayerCandidates rows;
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows.push_back(Accepting(network, i));
    if (rows.back().empty()) return Unimplemented("no kernel with the form that is held takes a layer's extents");
    if (OnlyRenames(network.layers[i])) {
      for (Candidate& row : rows.back()) row.microseconds.assign(sizes.size(), 0.0);
      continue;
    }
    const WeightShape* const weight = network.layers[i].weight < 0 ? nullptr : &shapes_[i];
    for (const BatchSize size : sizes) {
      const Problem problem = LayerProblem(network, network.layers[i], size, settings_.threads);
      for (Candidate& row : rows.back()) {
        row.microseconds.push_back(row.kernel == nullptr ? 0.0
                                                         : EstimateInPlan(*row.kernel, problem, weight, throughput_));
      }
    }
  }
  ConversionEstimates conversions(backend_, settings_, throughput_, sizes);
  const ConversionTimes times = [&](const NetworkValue& value, Storage from, Storage to) {
    return StatusOr<std::vector<double>>(conversions.Of(value, from, to));
  };
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int> common, ChooseKernels(network, rows, times));
  const auto held = [&](size_t layer, const Candidate& row) { return !TakesWeight(row) || weights_.Holds(layer, row); };
  SWIZZLE_ASSIGN_OR_RETURN(const auto choices, ChooseKernelsBySize(network, rows, times, common, held));
  return BucketsOf(rows, choices, sizes, max_batch);
}

bool Blueprint::Follow(const Network& network, int64_t max_batch, Decision& decision) const {
  SetLargest(max_batch, decision);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (OnlyRenames(network.layers[i])) continue;
    const Problem problem = LayerProblem(network, network.layers[i], 1, settings_.threads);
    const auto accepts = [&](const Candidate& row) {
      return row.kernel == nullptr || row.kernel->accepts(AsRowSolves(*row.kernel, problem));
    };
    for (BucketChoice& bucket : decision) {
      Candidate& chosen = bucket.layers[i];
      if (accepts(chosen)) continue;
      const auto other = std::ranges::find_if(rows_[i], [&](const Candidate& row) {
        return row.kernel != nullptr && row.input == chosen.input && row.output == chosen.output &&
               row.rounds_less == chosen.rounds_less && accepts(row);
      });
      if (other == rows_[i].end()) return false;
      chosen = *other;
    }
  }
  return true;
}

StatusOr<PreparedWeights> Blueprint::WeightsFor(const Network& network, const Decision& decision) const {
  PreparedWeights weights(backend_, rows_.size(), {&weights_, /*other_planes=*/true});
  for (const BucketChoice& bucket : decision) {
    for (size_t i = 0; i < bucket.layers.size(); ++i) {
      if (!TakesWeight(bucket.layers[i])) continue;
      const Problem problem = LayerProblem(network, network.layers[i], 1, settings_.threads);
      SWIZZLE_ASSIGN_OR_RETURN(const bool held, weights.PrepareFromOthers(i, bucket.layers[i], problem));
      if (!held) return Unimplemented("the form of a weight that is held does not do for other planes");
    }
  }
  weights.Detach();
  return weights;
}

StatusOr<std::shared_ptr<const Plan>> Blueprint::MakePlan(Network network, const PlanOptions& options) const {
  const Backend::Kind kind = backend_.kind();
  if (!std::holds_alternative<HostBackend*>(kind)) return Unimplemented("a device's forms are of one plane");
  if (!HasSameLayers(network, network_)) return Unimplemented("the layers are others");
  const int64_t max_batch = network.batch_size > 0 ? network.batch_size : options.max_batch;
  const ExtentClass extents = {Log2(InputElements(network)), Log2(max_batch)};
  std::shared_ptr<const Decision> known;
  {
    const MutexLock lock(mutex_);
    if (const auto found = decisions_.find(extents); found != decisions_.end()) known = found->second;
  }
  Decision decision;
  if (known != nullptr) decision = *known;
  if (known == nullptr || !Follow(network, max_batch, decision)) {
    SWIZZLE_ASSIGN_OR_RETURN(decision, Decide(network, max_batch, options));
    const MutexLock lock(mutex_);
    decisions_.try_emplace(extents, std::make_shared<const Decision>(decision));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const PreparedWeights weights, WeightsFor(network, decision));
  PlanReport report;
  report.threads = settings_.threads;
  report.device_bytes = weights.bytes();
  report.shared_bytes = weights.shared_bytes();
  report.micro_batch = max_batch;
  DropNames(network);
  Assembly assembly = Assemble(backend_, std::move(network), {max_batch, /*smaller_arenas=*/false}, settings_, decision,
                               weights, WeightFacts::None(network_));
  report.program_bytes = assembly.program->held_bytes();
  return NewHostPlan(*std::get<HostBackend*>(kind), std::move(assembly.program), {}, std::move(report));
}

}  // namespace swizzle
