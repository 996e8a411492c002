#include "model_loader/regions/recurrence.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/recurrent/recurrent.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using interpreter::Call;
using interpreter::Results;

constexpr size_t kX = 0, kInputWeights = 1, kStateWeights = 2, kBias = 3;

bool IsRecurrent(const Node& node) {
  return node.domain.empty() && (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN");
}

// The gates of a phase, one phase after another.
StatusOr<std::vector<int64_t>> PhasesOf(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t resets_products, IntAttribute(node, "linear_before_reset", 0));
  return interpreter::RecurrentPhases(node.op, resets_products != 0);
}

int64_t GatesOf(const std::vector<int64_t>& phases) {
  return std::accumulate(phases.begin(), phases.end(), int64_t{0});
}

// Whether a part of the bias is not in the sums from the start.
bool AddsBiasInSteps(const Node& node) {
  const auto resets_products = IntAttribute(node, "linear_before_reset", 0);
  return node.op == "GRU" && resets_products.ok() && *resets_products != 0;
}

// A constant input of FP32, or none.
const Array* KnownFloats(const Survey& survey, const Node& node, size_t i) {
  const auto found = survey.known.find(node.Input(i));
  return found == survey.known.end() || found->second.dtype != DType::kFloat32 ? nullptr : &found->second;
}

// A linear layer as a network of its own: rows [inputs] to [rows of the weight]. No bias: empty.
StatusOr<Network> LinearNetwork(const std::string& name, std::span<const float> weight, int64_t rows, int64_t inputs,
                                const std::vector<float>& bias) {
  Graph graph;
  graph.name = name;
  graph.opset = 17;
  Value x;
  x.name = name + ".x";
  x.shape = Shape{kFreeBatch, inputs};
  graph.inputs = {graph.AddValue(std::move(x))};
  Node node{"Gemm", "", name, {graph.inputs[0]}, {}, {{"transB", int64_t{1}}}};
  node.inputs.push_back(graph.AddConstant(name + ".weight", Tensor::Floats({rows, inputs}, weight)));
  if (!bias.empty()) node.inputs.push_back(graph.AddConstant(name + ".bias", Tensor::Floats({rows}, bias)));
  Value y;
  y.name = name + ".y";
  node.outputs = {graph.AddValue(std::move(y))};
  graph.outputs = {{name + ".y", node.outputs[0]}};
  graph.nodes.push_back(std::move(node));
  SWIZZLE_RETURN_IF_ERROR(RunRegionPasses(graph));
  return Lower(std::move(graph));
}

// [D*G*H], of the node's bias, which may be left out.
std::vector<float> SummedBiases(const Node& node, const Array* bias, int64_t gates, int64_t hidden) {
  std::vector<float> all;
  if (bias == nullptr) return all;
  for (int64_t direction = 0; direction < bias->shape[0]; ++direction) {
    const int64_t apart = AddsBiasInSteps(node) ? 1 : 0;
    const std::vector<float> sums = interpreter::SummedBias(*bias, gates, hidden, direction, apart);
    all.insert(all.end(), sums.begin(), sums.end());
  }
  return all;
}

// Runs of one call. Where rows do not end with whole vectors, which kernels read and write, a task has copies of its
// own.
class StateRuns final : public interpreter::StateProducts {
 public:
  StateRuns(Stream& stream, std::vector<std::shared_ptr<const Plan>> plans, int phases)
      : stream_(cpu::CpuStream::From(stream)), plans_(std::move(plans)), phases_(phases) {}

  // For so many tasks of at most `rows` each.
  Status Reserve(interpreter::Memory& memory, int64_t tasks, int64_t rows, bool by_all_threads) {
    for (const auto& plan : plans_) {
      const int64_t most = std::clamp<int64_t>(rows, 1, plan->max_batch());
      const size_t bytes = RoundUp(plan->ArenaBytes(BatchSize(most)), kBufferAlignment);
      arena_bytes_ = std::max(arena_bytes_, static_cast<int64_t>(bytes));
      for (const NetworkPort* port : {&plan->network().inputs[0], &plan->network().outputs[0]}) {
        row_floats_ = std::max(row_floats_, RoundUp<int64_t>(port->dims[0] * most, kVector));
      }
    }
    SWIZZLE_ASSIGN_OR_RETURN(arenas_, memory.Allocate(DType::kUint8, {tasks * arena_bytes_}));
    SWIZZLE_ASSIGN_OR_RETURN(copies_, memory.Allocate(DType::kFloat32, {tasks * 2 * row_floats_}));
    for (int64_t task = 0; !by_all_threads && task < tasks; ++task) {
      own_.push_back(std::make_unique<cpu::CpuStream>(1));
    }
    return {};
  }

  void Multiply(int64_t task, int phase, int64_t direction, int64_t rows, const float* from, float* to) override {
    const Plan& plan = *plans_[static_cast<size_t>(direction * phases_ + phase)];
    const int64_t inputs = plan.network().inputs[0].dims[0], outputs = plan.network().outputs[0].dims[0];
    for (int64_t row = 0; row < rows; row += plan.max_batch()) {
      const int64_t some = std::min(plan.max_batch(), rows - row);
      const float* const some_from = from + row * inputs;
      float* const some_to = to + row * outputs;
      if (some * inputs % kVector == 0 && some * outputs % kVector == 0) {
        Run(plan, task, some, some_from, some_to);
        continue;
      }
      float* const copy = copies_.Mutable<float>().data() + task * 2 * row_floats_;
      std::copy_n(some_from, some * inputs, copy);
      Run(plan, task, some, copy, copy + row_floats_);
      std::copy_n(copy + row_floats_, some * outputs, some_to);
    }
  }

 private:
  static constexpr int64_t kVector = 16;

  void Run(const Plan& plan, int64_t task, int64_t rows, const float* from, float* to) {
    const std::span<std::byte> arena(arenas_.data.get() + task * arena_bytes_, static_cast<size_t>(arena_bytes_));
    Stream& stream = own_.empty() ? stream_ : *own_[static_cast<size_t>(task)];
    const auto* const in = reinterpret_cast<const std::byte*>(from);
    auto* const out = reinterpret_cast<std::byte*>(to);
    stream_.Keep(plan.RunOn(stream, {arena, {&in, 1}, {&out, 1}}, BatchSize(rows)));
    if (!own_.empty()) stream_.Keep(stream.Synchronize());
  }

  cpu::CpuStream& stream_;
  const std::vector<std::shared_ptr<const Plan>> plans_;
  const int phases_;
  std::vector<std::unique_ptr<cpu::CpuStream>> own_;  // by task; none where the call's threads work together
  int64_t arena_bytes_ = 0, row_floats_ = 0;          // of a task
  Array arenas_, copies_;
};

class Recurrence final : public interpreter::Part, private interpreter::RecurrentProducts {
 public:
  Recurrence(const Graph& graph, const Survey& survey, int node, RecurrentPlans plans)
      : node_(graph.nodes[static_cast<size_t>(node)]), opset_(graph.opset), plans_(std::move(plans)) {
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const auto known = survey.known.find(node_.inputs[i]);
      const bool is_weight = i == kInputWeights || i == kStateWeights || (i == kBias && !AddsBiasInSteps(node_));
      if (node_.inputs[i] == kNoValue || is_weight) continue;
      if (known == survey.known.end()) given_.push_back(i);
      if (known != survey.known.end()) known_.emplace_back(i, known->second);
    }
  }

  // The node's inputs that the part takes.
  const std::vector<size_t>& given() const { return given_; }

  StatusOr<std::optional<Results>> Run(std::span<const Array> inputs, interpreter::Memory& memory, Stream& stream,
                                       StepGate* gate) const override {
    std::vector<Array> all(node_.inputs.size());
    for (const auto& [i, array] : known_) all[i] = array;
    for (size_t i = 0; i < inputs.size(); ++i) all[given_[i]] = inputs[i];
    Call call(node_, opset_, all, memory, stream);
    call.set_gate(gate);
    SWIZZLE_ASSIGN_OR_RETURN(Results made, interpreter::RunRecurrent(call, *this));
    Results results;
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] != kNoValue) results.push_back(std::move(made[i]));
    }
    return std::optional(std::move(results));
  }

 private:
  int64_t inputs() const override { return plans_.of_inputs->plan()->network().inputs[0].dims[0]; }
  int64_t hidden() const override { return plans_.of_states[0]->plan()->network().inputs[0].dims[0]; }
  bool by_all_threads() const override { return plans_.by_all_threads; }

  StatusOr<Array> OfInputs(Call& call, const Array& x) const override {
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Results> sums,
                             plans_.of_inputs->Run(std::span(&x, 1), call.memory(), call.stream(), call.gate()));
    if (!sums) return Unimplemented("it is not planned for such inputs");
    return std::move((*sums)[0]);
  }

  StatusOr<std::unique_ptr<interpreter::StateProducts>> OfStates(Call& call, int64_t tasks,
                                                                 int64_t rows) const override {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const auto& region : plans_.of_states) plans.push_back(region->plan());
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> phases, PhasesOf(node_));
    auto runs = std::make_unique<StateRuns>(call.stream(), std::move(plans), static_cast<int>(phases.size()));
    SWIZZLE_RETURN_IF_ERROR(runs->Reserve(call.memory(), tasks, rows, plans_.by_all_threads));
    return runs;
  }

  const Node node_;
  const int64_t opset_;
  const RecurrentPlans plans_;
  std::vector<size_t> given_;
  std::vector<std::pair<size_t, Array>> known_;
};

// INVALID_ARGUMENT unless all arrays are as the node needs them.
Status CheckArrays(const Node& node, const Array& w, const Array& r, const Array* bias, int64_t gates) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string direction, StringAttribute(node, "direction", "forward"));
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const auto fits = [&](const Array& array) {
    return array.rank() == 3 && array.shape[0] == directions && array.shape[1] == gates * r.shape[2] &&
           array.shape[2] > 0;
  };
  const bool as_needed = r.rank() == 3 && fits(w) && fits(r);
  if (as_needed && (bias == nullptr || bias->shape == Shape{directions, 2 * gates * r.shape[2]})) return {};
  return Unimplemented(Describe(node), ": its weights have other shapes than they must have");
}

}  // namespace

int RecurrentLayers::StateThreads(int threads) const {
  constexpr int64_t kWorthAWait = 1 << 16;  // multiply-adds
  if (directions >= threads) return 1;
  int64_t most = 0;
  for (const Network& network : of_states) {
    for (const Weight& weight : network.weights) most = std::max(most, weight.nonzeros());
  }
  return most < kWorthAWait ? 1 : threads;
}

StatusOr<RecurrentLayers> LayersOfRecurrence(const Graph& graph, const Survey& survey, int index) {
  const Node& node = graph.nodes[static_cast<size_t>(index)];
  const auto not_planned = [&] { return Unimplemented(Describe(node), " has no constant weights"); };
  if (!IsRecurrent(node) || node.inputs.size() <= kStateWeights) return not_planned();
  const int x = node.inputs[kX];
  if (survey.IsKnown(x) || survey.dtypes[static_cast<size_t>(x)] != DType::kFloat32) return not_planned();
  const Array *const w = KnownFloats(survey, node, kInputWeights), *const r = KnownFloats(survey, node, kStateWeights);
  const Array* const bias = KnownFloats(survey, node, kBias);
  if (w == nullptr || r == nullptr || (bias == nullptr && node.Input(kBias) != kNoValue)) return not_planned();
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> phases, PhasesOf(node));
  const int64_t gates = GatesOf(phases);
  SWIZZLE_RETURN_IF_ERROR(CheckArrays(node, *w, *r, bias, gates));
  RecurrentLayers layers;
  layers.directions = r->shape[0];
  layers.hidden = r->shape[2];
  const int64_t inputs = w->shape[2], width = gates * layers.hidden;
  SWIZZLE_ASSIGN_OR_RETURN(layers.of_inputs,
                           LinearNetwork(node.name + ".inputs", w->As<float>(), layers.directions * width, inputs,
                                         SummedBiases(node, bias, gates, layers.hidden)));
  auto weights = r->As<float>();
  for (int64_t direction = 0; direction < layers.directions; ++direction) {
    for (const int64_t of_phase : phases) {
      const auto count = static_cast<size_t>(of_phase * layers.hidden * layers.hidden);
      const std::string name = Concat(node.name, ".states", layers.of_states.size());
      SWIZZLE_ASSIGN_OR_RETURN(
          layers.of_states.emplace_back(),
          LinearNetwork(name, weights.first(count), of_phase * layers.hidden, layers.hidden, /*bias=*/{}));
      weights = weights.subspan(count);
    }
  }
  return layers;
}

interpreter::PartOfProgram MakeRecurrence(const Graph& graph, const Survey& survey, int index, RecurrentPlans plans) {
  const Node& node = graph.nodes[static_cast<size_t>(index)];
  const auto part = std::make_shared<const Recurrence>(graph, survey, index, std::move(plans));
  interpreter::PartOfProgram made{{index}, {}, {}, part, /*takes_all=*/true};
  for (const size_t i : part->given()) made.inputs.push_back(node.inputs[i]);
  for (const int output : node.outputs) {
    if (output != kNoValue) made.outputs.push_back(output);
  }
  return made;
}

}  // namespace swizzle::regions
