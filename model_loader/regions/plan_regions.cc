#include "model_loader/regions/plan_regions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/graph/shape_flow.h"
#include "model_loader/plan/choose/layer_rows.h"
#include "model_loader/plan/planner.h"
#include "model_loader/plan/weight_facts.h"
#include "model_loader/regions/attention.h"
#include "model_loader/regions/cut.h"
#include "model_loader/regions/largest_batch.h"
#include "model_loader/regions/likeness.h"
#include "model_loader/regions/recurrence.h"
#include "model_loader/regions/region_tuner.h"
#include "model_loader/regions/row_planner.h"
#include "model_loader/regions/sequence_regions.h"

namespace swizzle::regions {
namespace {

// Of a step of a recurrent node.
constexpr int64_t kMostSteppedRows = 64;

// Whether nodes read constants so often that copying them for each took forever. Those that are alike copy them once.
bool ReadsTooOften(const Graph& graph, const Survey& survey) {
  constexpr int64_t kMostTimes = 8, kFree = int64_t{1} << 26;  // the latter in bytes
  int64_t held = 0, read = 0;
  for (const auto& known : survey.known) held += known.second.bytes();
  Likeness likeness(graph, survey);
  std::set<std::string> seen;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    int64_t bytes = 0;
    for (const int input : graph.nodes[n].inputs) {
      const auto found = survey.known.find(input);
      if (found != survey.known.end()) bytes += found->second.bytes();
    }
    const bool counts = bytes > 0 && graph.nodes[n].outputs[0] != kNoValue;
    if (counts && seen.insert(likeness.Of(MakeRegion(graph, survey, Form::kNone, {static_cast<int>(n)}))).second) {
      read += bytes;
    }
  }
  return read > kMostTimes * held + kFree;
}

// The set holds the nodes that run once for all requests of the same shapes and are connected with no layer with
// weights among them: such layers are planned, and what is around them with them.
std::set<int> WithoutWeights(const std::vector<int>& steady, const Graph& graph, const Survey& survey) {
  const std::set<int> among(steady.begin(), steady.end());
  std::set<int> connected;
  std::vector<int> open;
  const auto add = [&](int node) {
    if (among.contains(node) && connected.insert(node).second) open.push_back(node);
  };
  for (const int node : steady) {
    if (HasKnownWeight(graph.nodes[static_cast<size_t>(node)], survey)) add(node);
  }
  while (!open.empty()) {
    const Node& node = graph.nodes[static_cast<size_t>(open.back())];
    open.pop_back();
    for (const int input : node.inputs) add(survey.MakerOf(input));
    for (const int output : node.outputs) {
      if (output == kNoValue) continue;
      for (const int reader : survey.readers[static_cast<size_t>(output)]) add(reader);
    }
  }
  std::set<int> others;
  std::ranges::set_difference(among, connected, std::inserter(others, others.end()));
  return others;
}

// The nodes that may be of regions.
std::vector<int> NodesToCut(const std::vector<interpreter::PartOfProgram>& parts, const std::vector<int>& steady,
                            const Graph& graph, const Survey& survey) {
  std::set<int> taken = WithoutWeights(steady, graph, survey);
  for (const interpreter::PartOfProgram& part : parts) taken.insert(part.nodes.begin(), part.nodes.end());
  std::vector<int> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!taken.contains(static_cast<int>(n))) nodes.push_back(static_cast<int>(n));
  }
  return nodes;
}

class RegionPlanner {
 public:
  RegionPlanner(const interpreter::Program& program, const Survey& survey, const RegionBackends& backends,
                const PlanOptions& options)
      : graph_(program.graph()),
        survey_(survey),
        place_(backends.device == nullptr ? interpreter::Place::kHost : interpreter::Place::kDevice),
        backend_(backends.device == nullptr ? backends.host : *backends.device),
        options_(options),
        likeness_(graph_, survey_) {}

  std::vector<Region> Cut(const std::vector<int>& nodes) const {
    // The host has kernels for all that lowering makes.
    const auto computes = [&](const Network& network) {
      return place_ == interpreter::Place::kHost || std::ranges::all_of(network.layers, [&](const Layer& layer) {
               return LayerRows(backend_, network, layer, {1, options_.precision}, false).ok();
             });
    };
    return CutRegions(graph_, survey_, nodes, {computes, place_ == interpreter::Place::kHost});
  }

  // Plans regions of sequences, which come before all others. Their share of the tuning budget, by layers.
  double AddSequences() {
    const auto has_weight = [&](const Node& node) { return HasKnownWeight(node, survey_); };
    const auto layers = static_cast<double>(std::max<int64_t>(std::ranges::count_if(graph_.nodes, has_weight), 1));
    double shares = 0;
    for (SequenceRegion& found : FindSequenceRegions(graph_, survey_)) {
      const auto of_region = std::ranges::count_if(
          found.region.nodes, [&](int node) { return has_weight(graph_.nodes[static_cast<size_t>(node)]); });
      PlanOptions options = OptionsOf(found.network, Form::kSequences, place_, 0, options_);
      options.tuning_budget *= static_cast<double>(of_region) / layers;
      const bool has_length = found.network.sequences->length > 0;  // else a plan takes so many tokens at most
      auto plan = Planned(std::move(found.network), options);
      if (!plan.ok()) continue;  // its layers are of other regions
      shares += static_cast<double>(of_region) / layers;
      auto made = Keep(Form::kSequences, *std::move(plan), nullptr);
      const bool takes_all = has_length && TakesAll(found.region);
      division.parts.push_back({std::move(found.region.nodes), std::move(found.region.inputs),
                                std::move(found.region.outputs), std::move(made), takes_all});
    }
    return shares;
  }

  // By the first node of each; what recurrent nodes multiply stays last.
  void SortPlanned() {
    std::map<const interpreter::Part*, int> first_nodes;
    for (const interpreter::PartOfProgram& part : division.parts) {
      first_nodes.try_emplace(part.part.get(), part.nodes.front());
    }
    std::ranges::stable_sort(planned, {}, [&](const std::shared_ptr<const PlannedRegion>& region) {
      const auto found = first_nodes.find(region.get());
      return found == first_nodes.end() ? std::numeric_limits<int>::max() : found->second;
    });
  }

  // Plans the region, or, where that fails, what is between its transposes and their kin, or each of its layers alone.
  void Add(const Region& region) {
    if (Plans(region) || region.nodes.size() == 1) return;
    std::vector<int> others;
    std::ranges::copy_if(region.nodes, std::back_inserter(others), [&](int node) {
      const std::string& op = graph_.nodes[static_cast<size_t>(node)].op;
      return std::ranges::find(kRearranging, op) == kRearranging.end() && !IsHalfARounding(region, node);
    });
    for (const Region& part : Cut(others)) {
      if (!Plans(part) && part.nodes.size() > 1) AddLayers(part);
    }
  }

  void AddLayers(const Region& region) {
    for (const int node : region.nodes) {
      if (!HasKnownWeight(graph_.nodes[static_cast<size_t>(node)], survey_)) continue;
      Plans(MakeRegion(graph_, survey_, region.form, {node}));
    }
  }

  // Plans what a recurrent node multiplies. `threads`: of the streams that it runs on.
  void AddRecurrence(int node, RecurrentLayers layers, int threads) {
    PlanOptions of_inputs = OptionsOf(layers.of_inputs, Form::kVectors, place_,
                                      VectorsOfARow(graph_.nodes[static_cast<size_t>(node)].inputs.front()), options_);
    PlanOptions of_states = options_;
    of_states.threads = layers.StateThreads(threads);
    of_states.measured_batches = {1, kMostSteppedRows / 8};
    of_states.max_batch = kMostSteppedRows;
    std::vector<StatusOr<TunablePlan>> plans;
    plans.push_back(Planned(std::move(layers.of_inputs), of_inputs));
    for (Network& network : layers.of_states) plans.push_back(Planned(std::move(network), of_states));
    for (const auto& plan : plans) {
      if (!plan.ok()) {
        Refused(plan.status());
        return;
      }
    }
    std::vector<std::shared_ptr<const PlannedRegion>> made;
    for (auto& plan : plans) made.push_back(Keep(Form::kVectors, *std::move(plan), nullptr));
    RecurrentPlans of_node{made[0], {made.begin() + 1, made.end()}, of_states.threads != 1};
    division.parts.push_back(MakeRecurrence(graph_, survey_, node, std::move(of_node)));
    recurrences.push_back(division.parts.back().part);
  }

  // From now on plans come with tuners, which share what they measure in `cache` where that is not null.
  void MakeTunable(TuningCache* cache) {
    tunable_ = true;
    shared_times_ = cache;
  }

  std::vector<RegionTuner::Tunable> tunables;
  interpreter::Division division;
  std::vector<std::shared_ptr<const PlannedRegion>> planned, again;  // RegionalProgram::regions, again
  std::vector<std::shared_ptr<const interpreter::Part>> recurrences;
  std::vector<std::string> refusals;  // of regions that were to be planned

 private:
  // Whether the other half is of another region.
  bool IsHalfARounding(const Region& region, int node) const {
    const Idiom* const idiom = survey_.IdiomOf(static_cast<size_t>(node));
    return idiom != nullptr && idiom->op == "QuantizeLinear" &&
           !std::ranges::all_of(idiom->nodes, [&](int n) { return std::ranges::binary_search(region.nodes, n); });
  }

  bool Refused(const Status& status) {
    refusals.emplace_back(status.message());
    return false;
  }

  // Regions that are alike have one plan, and one reason why there is none.
  bool Plans(const Region& region) {
    const auto [alike, is_new] = alike_.try_emplace(likeness_.Of(region), nullptr);
    if (is_new && !PlansFirst(region, alike->second)) return false;
    if (alike->second == nullptr) return false;
    if (!is_new) again.push_back(alike->second);
    division.parts.push_back({region.nodes, region.inputs, region.outputs, alike->second, TakesAll(region)});
    return true;
  }

  // Makes `planned_as`, if there can be one.
  bool PlansFirst(const Region& region, std::shared_ptr<const PlannedRegion>& planned_as) {
    StatusOr<Network> network = NetworkOf(graph_, survey_, region);
    if (!network.ok()) return Refused(network.status());
    const bool takes_all = TakesAll(region);
    const uint64_t content = takes_all ? 0 : ContentHash(*network);
    const PlanOptions options =
        OptionsOf(*network, region.form, place_, VectorsOfARow(region.inputs.front()), options_);
    auto plan = Planned(*std::move(network), options, !takes_all);
    if (!plan.ok()) return Refused(plan.status());
    std::unique_ptr<ShapePlans> others;
    if (!takes_all) others = OthersOf(region, *plan, content);
    planned_as = Keep(region.form, *std::move(plan), std::move(others));
    return true;
  }

  std::shared_ptr<const PlannedRegion> Keep(Form form, TunablePlan plan, std::unique_ptr<ShapePlans> others) {
    auto made = std::make_shared<PlannedRegion>(form, place_, std::move(plan.plan), std::move(others));
    planned.push_back(made);
    if (plan.tuner != nullptr) tunables.push_back({std::move(made), std::move(plan.tuner)});
    return planned.back();
  }

  // How many vectors of the value one row of the model's batch has, where that is known and few, else a middling
  // number.
  int64_t VectorsOfARow(int value) const {
    constexpr int64_t kMiddling = 64, kFew = 128;
    const auto vectors = [&](const std::optional<Shape>& shape) {
      return shape ? ProductOf(*shape, 0, static_cast<int64_t>(shape->size()) - 1) : 0;
    };
    const auto input = static_cast<size_t>(value);
    const int64_t some = vectors(survey_.shapes[input]), others = vectors(survey_.other_shapes[input]);
    const bool go_by_rows =
        survey_.shapes_follow && some % kSurveyedRows == 0 && some / kSurveyedRows * kOtherSurveyedRows == others;
    const int64_t of_row = go_by_rows ? some / kSurveyedRows : some == others ? some : kMiddling;
    return of_row >= 1 && of_row <= kFew && place_ == interpreter::Place::kHost ? of_row : kMiddling;
  }

  StatusOr<TunablePlan> Planned(Network network, PlanOptions options, bool leaves_blueprint = false) const {
    if (shared_times_ != nullptr) options.tuning_cache = shared_times_;
    PlanMaterials materials(std::move(network));
    materials.leaves_blueprint = leaves_blueprint;
    if (tunable_) return MakeTunablePlan(std::move(materials), backend_, options);
    TunablePlan fixed;
    SWIZZLE_ASSIGN_OR_RETURN(fixed.plan, MakePlan(materials, backend_, options));
    fixed.blueprint = std::move(materials.blueprint);
    return fixed;
  }

  // Of rows that are not as in the survey. `content`: ContentHash of the region's network.
  std::unique_ptr<ShapePlans> OthersOf(const Region& region, const TunablePlan& plan, uint64_t content) const {
    Excerpt excerpt = ExcerptOf(graph_, survey_, region);
    RowPlanner::Settings settings{place_, VectorsOfARow(region.inputs.front()), options_, content};
    auto planner =
        std::make_shared<const RowPlanner>(std::move(excerpt), backend_, plan.plan->network(), std::move(settings));
    const auto make = [planner](const RowShapes& rows, int64_t batch, const Blueprint& held) {
      return planner->PlanFor(rows, batch, held);
    };
    return std::make_unique<ShapePlans>(make, plan.blueprint, store_);
  }

  // Whether rows are the same in every run.
  bool TakesAll(const Region& region) const {
    return survey_.shapes_follow && std::ranges::all_of(region.inputs, [&](int value) {
             const auto index = static_cast<size_t>(value);
             const std::optional<Shape>& other = survey_.other_shapes[index];
             return other && RowShape(*survey_.shapes[index], region.form) == RowShape(*other, region.form);
           });
  }

  const Graph& graph_;
  const Survey& survey_;
  const interpreter::Place place_;
  Backend& backend_;
  const PlanOptions& options_;
  Likeness likeness_;
  std::map<std::string, std::shared_ptr<const PlannedRegion>> alike_;  // by likeness; null: refused
  bool tunable_ = false;
  TuningCache* shared_times_ = nullptr;
  const std::shared_ptr<PlanStore> store_ = std::make_shared<PlanStore>();
};

// `threads`: becomes how many there are where it is 0. Errors say why nothing of the program can be planned. refusal:
// RegionalProgram's.
StatusOr<Survey> SurveyFor(const interpreter::Program& program, Backend& backend, int& threads,
                           const ExpectedRequests& requests, Status& refusal) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, backend.NewStream(threads));
  threads = stream->threads();
  StatusOr<Survey> surveyed = SurveyProgram(program, *stream, requests.limits, requests.samples);
  if (surveyed.status().code() == StatusCode::kFailedPrecondition) refusal = surveyed.status();
  SWIZZLE_ASSIGN_OR_RETURN(Survey survey, std::move(surveyed));
  refusal = CheckOutputTypes(program, survey);
  if (ReadsTooOften(program.graph(), survey)) return Unimplemented("it reads its constants many times over");
  return survey;
}

// Runs the program once where it was planned for a device: whether it can, and what runs where.
Status MoveToDevice(const Survey& survey, const RegionBackends& backends, Precision precision,
                    const interpreter::Limits& limits, RegionalProgram& planned) {
  const offload::DeviceProgram::Traits traits = {survey.shapes_follow, precision};
  auto program = std::make_shared<offload::DeviceProgram>(planned.program, traits, backends.host, *backends.device,
                                                          *backends.functions);
  SWIZZLE_RETURN_IF_ERROR(program->Try(survey.inputs.shapes, limits));
  planned.on_device = std::move(program);
  return {};
}

// What the host plans of recurrent nodes, by node.
std::vector<std::pair<int, RecurrentLayers>> RecurrencesOf(const Graph& graph, const Survey& survey) {
  std::vector<std::pair<int, RecurrentLayers>> recurrences;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    StatusOr<RecurrentLayers> layers = LayersOfRecurrence(graph, survey, static_cast<int>(n));
    if (layers.ok()) recurrences.emplace_back(static_cast<int>(n), *std::move(layers));
  }
  return recurrences;
}

// Nodes with weights that no part computes.
int UnplannedLayers(const interpreter::Program& program, const Survey& survey) {
  return static_cast<int>(std::ranges::count_if(program.turns(), [&](const interpreter::Program::Turn& turn) {
    const Node& node = program.graph().nodes[static_cast<size_t>(turn.nodes.front())];
    return turn.part == nullptr && HasKnownWeight(node, survey);
  }));
}

// with_sequences: whether some may be of sequences.
StatusOr<TunableRegions> PlanAll(const std::shared_ptr<const interpreter::Program>& program,
                                 const RegionBackends& backends, const PlanOptions& options,
                                 const ExpectedRequests& requests, bool tunable, Status& refusal,
                                 bool with_sequences = true) {
  PlanOptions of_one = options;
  SWIZZLE_ASSIGN_OR_RETURN(const Survey survey, SurveyFor(*program, backends.host, of_one.threads, requests, refusal));
  const Graph& graph = program->graph();
  const interpreter::Place place = backends.device == nullptr ? interpreter::Place::kHost : interpreter::Place::kDevice;
  std::unique_ptr<TuningCache> times;  // the regions' own: their layers are often alike
  RegionPlanner planner(*program, survey, backends, of_one);
  if (tunable) {
    Backend& computing = backends.device == nullptr ? backends.host : *backends.device;
    if (options.tuning_cache == nullptr) times = std::make_unique<TuningCache>("", computing);
    planner.MakeTunable(times.get());
  }
  if (with_sequences) of_one.tuning_budget *= 1 - planner.AddSequences();
  std::vector<interpreter::PartOfProgram> attention =
      AttentionBeside(planner.division.parts, FindAttention(graph, survey, place));
  std::vector<interpreter::PartOfProgram> taken = planner.division.parts;
  std::ranges::copy(attention, std::back_inserter(taken));
  const bool on_host = place == interpreter::Place::kHost;
  std::vector<int> steady = on_host ? SteadyNodes(graph) : std::vector<int>();
  const std::vector<Region> regions = planner.Cut(NodesToCut(taken, steady, graph, survey));
  std::vector<std::pair<int, RecurrentLayers>> recurrences;
  if (on_host) recurrences = RecurrencesOf(graph, survey);
  int64_t plans = std::ssize(regions);
  for (const auto& [node, layers] : recurrences) plans += 1 + std::ssize(layers.of_states);
  of_one.tuning_budget /= std::max<int64_t>(plans, 1);
  for (const Region& region : regions) planner.Add(region);
  for (auto& [node, layers] : recurrences) planner.AddRecurrence(node, std::move(layers), of_one.threads);
  if (planner.planned.empty()) return Unimplemented("no layer of it has weights that a plan takes");
  planner.division.known = survey.known;
  planner.division.known.insert(survey.fixed.begin(), survey.fixed.end());
  planner.division.steady = std::move(steady);
  planner.SortPlanned();
  std::ranges::move(attention, std::back_inserter(planner.division.parts));
  TunableRegions made;
  made.program.program = program->Divided(std::move(planner.division));
  if (made.program.program == nullptr) {
    // A region of sequences may hold layers of which others need the first, and make what the last needs.
    if (!with_sequences) return Unimplemented("its regions wait for each other");
    return PlanAll(program, backends, options, requests, tunable, refusal, /*with_sequences=*/false);
  }
  made.program.regions = std::move(planner.planned);
  made.program.again = std::move(planner.again);
  made.program.recurrences = std::move(planner.recurrences);
  made.program.refusals = std::move(planner.refusals);
  made.program.run_memory = survey.memory;
  made.program.surveyed = survey.inputs;
  made.program.unplanned_layers = UnplannedLayers(*made.program.program, survey);
  if (backends.device != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(MoveToDevice(survey, backends, options.precision, requests.limits, made.program));
  }
  if (planner.tunables.empty()) return made;
  made.tuner = std::make_unique<RegionTuner>(std::move(planner.tunables), std::move(times));
  return made;
}

// What cannot be planned stays as it is.
TunableRegions PlanOrLeave(std::shared_ptr<const interpreter::Program> program, const RegionBackends& backends,
                           const PlanOptions& options, const ExpectedRequests& requests, bool tunable) {
  Status refusal;
  StatusOr<TunableRegions> planned = PlanAll(program, backends, options, requests, tunable, refusal);
  if (planned.ok()) planned->program.refusal = std::move(refusal);
  if (planned.ok()) return *std::move(planned);
  const std::string reason(planned.status().message());
  TunableRegions made;
  if (backends.device == nullptr) {
    made.program.program = std::move(program);
    made.program.unplanned = reason;
    made.program.refusal = std::move(refusal);
    return made;
  }
  PlanOptions on_host = options;
  if (!backends.host.Computes(options.precision)) on_host.precision = Precision::kFloat32;
  on_host.tuning_cache = nullptr;  // the device's
  made = PlanOrLeave(std::move(program), backends.host, on_host, requests, tunable);
  made.program.not_on_device = reason;
  return made;
}

}  // namespace

RegionalProgram PlanRegions(std::shared_ptr<const interpreter::Program> program, const RegionBackends& backends,
                            const PlanOptions& options, const ExpectedRequests& requests) {
  return PlanOrLeave(std::move(program), backends, options, requests, false).program;
}

TunableRegions PlanTunableRegions(std::shared_ptr<const interpreter::Program> program, const RegionBackends& backends,
                                  const PlanOptions& options, const ExpectedRequests& requests) {
  return PlanOrLeave(std::move(program), backends, options, requests, true);
}

}  // namespace swizzle::regions
