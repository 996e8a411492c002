#include "model_loader/plan/planner.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/base/mutex.h"
#include "model_loader/network/shared_weights.h"
#include "model_loader/plan/assemble.h"
#include "model_loader/plan/blueprint.h"
#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/choose/kernel_choice.h"
#include "model_loader/plan/choose/measured_sizes.h"
#include "model_loader/plan/choose/nested_copies.h"
#include "model_loader/plan/choose/norm_pairs.h"
#include "model_loader/plan/choose/pooled_layers.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/host_tuning.h"
#include "model_loader/plan/layer_reports.h"
#include "model_loader/plan/prepared_weights.h"
#include "model_loader/plan/run/device_plan.h"
#include "model_loader/plan/run/host_plan.h"
#include "model_loader/plan/weight_facts.h"

namespace swizzle {
namespace {

// How much the plan may compute at once.
StatusOr<BatchSize> MaxSize(const Network& network, const PlanOptions& options) {
  const int64_t rows = network.batch_size > 0 ? network.batch_size : options.max_batch;
  if (rows < 1) return InvalidArgument("max_batch is ", rows, "; it must be at least 1");
  if (!network.sequences) return BatchSize(rows);
  const int64_t length = network.sequences->length;
  const int64_t tokens = network.batch_size > 0 && length > 0 ? rows * length : options.max_tokens;
  if (tokens >= std::max<int64_t>(length, 1)) return BatchSize(std::min(rows, tokens), tokens);
  return InvalidArgument("max_tokens is ", tokens, "; it must be at least ", std::max<int64_t>(length, 1));
}

// Rows, or tokens where there are sequences.
int64_t CountOf(const Network& network, BatchSize size) { return network.sequences ? size.tokens : size.rows; }

// Makes one plan: measures, chooses, prepares weights and puts the program together. Used once.
class Planner {
 public:
  // What outlives this: all but the options, and what `on` names.
  Planner(PlanMaterials& materials, Backend& backend, MeasuredOn on, BatchSize max_size, const PlanOptions& options)
      : materials_(materials),
        network_(materials.network),
        keeps_weights_(materials.keep || options.keep_weights),
        backend_(backend),
        max_size_(max_size),
        options_(options),
        settings_{on.threads, options.precision},
        measurer_(backend, on,
                  MeasuredSizes(network_, max_size,
                                MeasuredCounts(network_, max_size, !HasHostMemory(backend), options.measured_batches)),
                  options),
        other_planes_(materials.other_planes),
        weights_(backend, network_.layers.size(),
                 {materials.weights ? &*materials.weights : nullptr, materials.other_planes}) {}

  StatusOr<std::shared_ptr<const Plan>> Make() {
    SWIZZLE_ASSIGN_OR_RETURN(candidates_,
                             MeasureWithPairs(network_, backend_, settings_, options_.dense_only, measurer_));
    if (!HasHostMemory(backend_)) LeaveOutNestedCopies(network_, candidates_);
    AddPooledRenames(network_, candidates_);
    FollowOtherPlanes();
    SWIZZLE_ASSIGN_OR_RETURN(common_, ChooseKernels(network_, candidates_, conversion_times_));
    if (!other_planes_) SWIZZLE_RETURN_IF_ERROR(ChooseBlockings());
    const WeightFacts facts(network_);
    std::vector<WeightShape> shapes = WeightShapes();
    PlanReport report = StartReport();
    SWIZZLE_RETURN_IF_ERROR(PrepareWeights());
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<BucketChoice> choices, ChooseByBucket());
    Assembly assembly = Assemble(backend_, OfPlan(), {max_size_}, settings_, choices, weights_, facts);
    if (choices.size() > 1 && !assembly.program->has_tail()) {
      // Parts of a batch gain more from a tail than sizes do from kernels of their own.
      std::vector<BucketChoice> alike = {CommonBucket()};
      Assembly common = Assemble(backend_, OfPlan(), {max_size_}, settings_, alike, weights_, facts);
      if (common.program->has_tail()) {
        std::tie(assembly, choices) = std::tuple(std::move(common), std::move(alike));
      }
    }
    DropUnread(choices);
    AddChoices(choices, report);
    report.conversions = assembly.conversions;
    SWIZZLE_ASSIGN_OR_RETURN(auto plan, Finish(assembly, std::move(report)));
    weights_.Detach();
    materials_.weights = std::move(weights_);
    if (materials_.leaves_blueprint) {
      materials_.blueprint = std::make_shared<const Blueprint>(backend_, settings_, Bare(), std::move(shapes),
                                                               candidates_, *materials_.weights);
    }
    return plan;
  }

 private:
  // Leaves each layer the kernels that read what is held, where there are any.
  void FollowOtherPlanes() {
    if (!other_planes_) return;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      std::vector<Candidate> following = candidates_[i];
      std::erase_if(following, [&](Candidate& candidate) { return !weights_.FollowOthers(i, candidate); });
      if (!following.empty()) candidates_[i] = std::move(following);
    }
  }

  // Those of a layer's kernels that would read the same form are the same.
  Status ChooseBlockings() {
    std::vector<Candidate> chosen;
    for (size_t i = 0; i < candidates_.size(); ++i) chosen.push_back(candidates_[i][common_[i]]);
    SWIZZLE_RETURN_IF_ERROR(measurer_.ChooseBlockings(network_, chosen));
    for (size_t i = 0; i < candidates_.size(); ++i) {
      for (Candidate& candidate : candidates_[i]) {
        if (TakesWeight(candidate) && TakesWeight(chosen[i]) &&
            candidate.kernel->prepare == chosen[i].kernel->prepare) {
          candidate.blocking = chosen[i].blocking;
        }
      }
    }
    return absl::OkStatus();
  }

  Status Prepare(size_t layer, const Candidate& candidate) {
    if (!TakesWeight(candidate)) return absl::OkStatus();
    if (candidate.norm >= 0) {
      const NormPair pair{layer, static_cast<size_t>(candidate.norm)};
      const Problem problem = LayerProblem(network_, LayerOfPair(network_, pair), 1, settings_.threads);
      return weights_.Prepare(layer, candidate, WeightOfPair(network_, pair), problem);
    }
    const Layer& described = network_.layers[layer];
    const Problem problem = LayerProblem(network_, described, 1, settings_.threads);
    return weights_.Prepare(layer, candidate, network_.weights[described.weight], problem);
  }

  // The form of this layer that all batch sizes have in common.
  Status PrepareCommonForm(size_t layer) {
    SWIZZLE_RETURN_IF_ERROR(Prepare(layer, candidates_[layer][common_[layer]]));
    const bool more = std::ranges::any_of(wanted_, [&](const WantedForm& form) {
      return form.layer == layer || candidates_[form.layer][form.candidate].norm == static_cast<int>(layer);
    });
    const int weight = network_.layers[layer].weight;
    if (weight >= 0 && !more && !keeps_weights_ && std::ranges::count(network_.layers, weight, &Layer::weight) == 1) {
      network_.weights[weight] = Weight{};
    }
    return absl::OkStatus();
  }

  // Of all layers, by as many threads as the plan has, or as was asked for: nothing else takes so long before a model
  // is ready. A device's are copied to it by one. Layers that read one weight share its form.
  Status PrepareCommonForms() {
    const std::vector<size_t> first = FirstOfAlike(network_);
    std::atomic<size_t> next = 0;
    Mutex mutex;
    Status status;  // of the first that failed
    int64_t done = 0;
    const auto work = [&] {
      for (size_t layer = next++; layer < candidates_.size(); layer = next++) {
        const Status prepared = first[layer] == layer ? PrepareCommonForm(layer) : Status();
        const MutexLock lock(mutex);
        status.Update(prepared);
        if (!status.ok()) return;
        if (options_.progress) options_.progress({PlanProgress::Stage::kPreparing, ++done, std::ssize(candidates_)});
      }
    };
    std::vector<std::future<void>> others;
    const int most = options_.preparing_threads > 0 ? options_.preparing_threads : settings_.threads;
    const int threads = HasHostMemory(backend_) ? std::min(most, static_cast<int>(candidates_.size())) : 1;
    try {
      for (int i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {  // there are no more threads
    }
    work();
    for (std::future<void>& other : others) other.get();
    for (size_t layer = 0; layer < candidates_.size() && status.ok(); ++layer) {
      const Candidate& candidate = candidates_[layer][common_[layer]];
      const bool shared = first[layer] != layer && candidate.norm < 0 && weights_.Share(layer, candidate, first[layer]);
      if (first[layer] != layer && !shared) status = PrepareCommonForm(layer);
    }
    return status;
  }

  // The forms that all batch sizes have in common, and of others as many as the budget allows. Weights of the network
  // are dropped as soon as nothing more is made of them.
  Status PrepareWeights() {
    const bool usual = options_.weight_budget <= 0.0;
    const double budget = usual ? UsualWeightBudget(HasHostMemory(backend_)) : options_.weight_budget;
    if (budget > 1.0) {
      const double least_worth = usual ? kLeastWorth : 0.0;
      SWIZZLE_ASSIGN_OR_RETURN(wanted_,
                               FindWantedForms(network_, candidates_, conversion_times_, common_, least_worth));
    }
    SWIZZLE_RETURN_IF_ERROR(PrepareCommonForms());
    const double most = budget * static_cast<double>(weights_.bytes());
    for (const WantedForm& form : wanted_) {
      const Candidate& candidate = candidates_[form.layer][form.candidate];
      const Status prepared = Prepare(form.layer, candidate);
      if (absl::IsResourceExhausted(prepared)) break;  // it does without
      SWIZZLE_RETURN_IF_ERROR(prepared);
      if (static_cast<double>(weights_.bytes()) > most) weights_.Drop(form.layer, candidate);
    }
    if (!keeps_weights_) network_.weights.clear();
    return absl::OkStatus();
  }

  // Drops forms that no size runs on: those beside common ones, and common ones where every size has another.
  void DropUnread(const std::vector<BucketChoice>& choices) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      weights_.KeepOnly(i, [&](const Candidate& reader) {
        return std::ranges::any_of(choices,
                                   [&](const BucketChoice& choice) { return ReadSameForm(reader, choice.layers[i]); });
      });
    }
  }

  // By layer, where somebody will ask.
  std::vector<WeightShape> WeightShapes() const {
    std::vector<WeightShape> shapes;
    for (size_t i = 0; materials_.leaves_blueprint && i < network_.layers.size(); ++i) {
      const int weight = network_.layers[i].weight;
      shapes.push_back(weight < 0 ? WeightShape() : WeightShape(network_.weights[weight]));
    }
    return shapes;
  }

  // As the plan has it.
  Network OfPlan() { return options_.keep_weights ? network_ : Bare(); }

  // The network without its weights.
  Network Bare() {
    std::vector<Weight> weights = std::exchange(network_.weights, {});
    Network bare = network_;
    network_.weights = std::move(weights);
    return bare;
  }

  BucketChoice CommonBucket() const {
    BucketChoice bucket{CountOf(network_, max_size_), {}};
    for (size_t i = 0; i < candidates_.size(); ++i) bucket.layers.push_back(candidates_[i][common_[i]]);
    return bucket;
  }

  StatusOr<std::vector<BucketChoice>> ChooseByBucket() {
    const auto held = [&](size_t layer, const Candidate& candidate) { return weights_.Holds(layer, candidate); };
    SWIZZLE_ASSIGN_OR_RETURN(const auto choices,
                             ChooseKernelsBySize(network_, candidates_, conversion_times_, common_, held));
    const int64_t most = CountOf(network_, max_size_);
    const std::vector<int64_t> limits =
        choices.size() == 1 ? std::vector<int64_t>{most} : BucketLimits(Measured(), most);
    std::vector<BucketChoice> buckets;
    for (size_t b = 0; b < choices.size(); ++b) {
      BucketChoice& bucket = buckets.emplace_back();
      bucket.most = limits[b];
      for (size_t i = 0; i < candidates_.size(); ++i) bucket.layers.push_back(candidates_[i][choices[b][i]]);
    }
    return buckets;
  }

  std::vector<int64_t> Measured() const {
    std::vector<int64_t> counts;
    for (const BatchSize size : measurer_.sizes()) counts.push_back(CountOf(network_, size));
    return counts;
  }

  PlanReport StartReport() const {
    PlanReport report;
    report.backend = std::string(backend_.name());
    report.device = backend_.device_name();
    report.threads = settings_.threads;
    report.measured_batches = Measured();
    report.layers = DescribeLayers(network_, candidates_);
    report.dense_bytes = network_.DenseWeightBytes();
    report.stored_bytes = network_.StoredWeightBytes();
    report.micro_batch = options_.micro_batch > 0 ? options_.micro_batch : CountOf(network_, max_size_);
    return report;
  }

  void AddChoices(const std::vector<BucketChoice>& choices, PlanReport& report) const {
    for (const BucketChoice& choice : choices) {
      report.buckets.push_back(choice.most);
      std::vector<std::pair<int, std::string_view>> named;  // norms by whose kernel they are computed
      for (size_t i = 0; i < choice.layers.size(); ++i) {
        const Kernel* const kernel = choice.layers[i].kernel;
        report.layers[i].kernels.emplace_back(kernel == nullptr ? "" : kernel->name);
        const int norm = choice.layers[i].norm;
        if (norm >= 0) named.emplace_back(norm, kernel->name);
      }
      for (const auto& [norm, name] : named) report.layers[norm].kernels.back() = name;
    }
    for (size_t i = 0; i < report.layers.size(); ++i) {
      const Candidate& common = candidates_[i][common_[i]];
      if (common.blocking != 0) report.layers[i].blocking = std::string(common.kernel->blockings[common.blocking]);
      report.layers[i].device_bytes = weights_.bytes(i);
    }
    report.device_bytes = weights_.bytes();
    report.shared_bytes = weights_.shared_bytes();
    report.timed_now = measurer_.timed_now();
    report.timed_before = measurer_.timed_before();
    report.suspect = measurer_.suspect();
    report.untimed = measurer_.untimed_layers();
  }

  StatusOr<std::shared_ptr<const Plan>> Finish(const Assembly& assembly, PlanReport report) {
    const Backend::Kind kind = backend_.kind();
    if (auto* const device = std::get_if<DeviceBackend*>(&kind)) {
      return NewDevicePlan(**device, assembly.program, std::move(report));
    }
    HostBackend& host = *std::get<HostBackend*>(kind);
    if (other_planes_) return NewHostPlan(host, assembly.program, {}, std::move(report));
    SWIZZLE_ASSIGN_OR_RETURN(HostTuning tuning, TuneOnHost(host, assembly, report, options_));
    report.micro_batch = tuning.micro_batch;
    report.small_batch = tuning.serial.most;
    report.suspect += tuning.suspect;
    report.untimed += tuning.complete ? 0 : 1;
    if (tuning.serial.most > 0) {
      const std::vector<int> layers = assembly.program->LayersOf(tuning.serial.list);
      for (size_t i = 0; i < layers.size(); ++i) {
        if (tuning.serial.steps[i] && layers[i] >= 0) report.layers[layers[i]].serial = true;
      }
    }
    return NewHostPlan(host, assembly.program, std::move(tuning.serial), std::move(report));
  }

  PlanMaterials& materials_;  // whose weights are those of the plan before, then of this one
  Network& network_;
  const bool keeps_weights_;
  Backend& backend_;
  const BatchSize max_size_;
  const PlanOptions& options_;
  const RunSettings settings_;
  Measurer measurer_;
  const bool other_planes_;
  PreparedWeights weights_;
  LayerCandidates candidates_;
  std::vector<WantedForm> wanted_;  // held beside those of common_, as far as the budget allows
  std::vector<int> common_;         // the candidate of each layer that suits all batch sizes best
  const ConversionTimes conversion_times_ = [this](const NetworkValue& value, Storage from,
                                                   Storage to) -> StatusOr<std::vector<double>> {
    if (from.pooled || to.pooled) return std::vector<double>();  // nothing does
    return measurer_.MeasureConversion(value, from, to);
  };
};

}  // namespace

Status CheckComputes(const Backend& backend, Precision precision) {
  if (backend.Computes(precision)) return {};
  return Unimplemented("precision ", PrecisionName(precision), ": the ", backend.name(),
                       " backend computes in FP32 or BF16");
}

StatusOr<std::shared_ptr<const Plan>> MakePlan(PlanMaterials& materials, Backend& backend, const PlanOptions& options) {
  SWIZZLE_RETURN_IF_ERROR(CheckComputes(backend, options.precision));
  SWIZZLE_ASSIGN_OR_RETURN(const BatchSize max_size, MaxSize(materials.network, options));
  FuseFor(backend, materials.network);
  const bool measures = options.tuning_budget > absl::ZeroDuration(), on_host = HasHostMemory(backend);
  const bool watches = options.make_watch != nullptr && on_host && measures;
  const std::set<int> threads_before = watches ? ThreadIds() : std::set<int>();
  std::unique_ptr<Stream> stream;
  if (measures || (on_host && options.threads == 0)) {  // which knows how many threads "all" are
    SWIZZLE_ASSIGN_OR_RETURN(stream, backend.NewStream(options.threads));
  }
  const auto watch = watches ? options.make_watch(threads_before) : nullptr;
  const int threads = stream != nullptr ? stream->threads() : on_host ? options.threads : 1;
  AlgorithmChoices* const algorithms = options.tuning_cache == nullptr ? nullptr : ChoicesOf(backend);
  if (algorithms != nullptr) options.tuning_cache->GiveChoices(*algorithms);
  auto plan = Planner(materials, backend, {stream.get(), watch.get(), threads}, max_size, options).Make();
  if (algorithms != nullptr) options.tuning_cache->TakeChoices(*algorithms);
  return plan;
}

StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, Backend& backend, const PlanOptions& options) {
  PlanMaterials materials(std::move(network));
  return MakePlan(materials, backend, options);
}

PlanMaterials::PlanMaterials(Network of) : network(std::move(of)) { FuseLayers(network); }

}  // namespace swizzle
