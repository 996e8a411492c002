#include "model_loader/interpreter/run/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "absl/container/inlined_vector.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/operators/text.h"
#include "model_loader/interpreter/values/settle.h"
#include "model_loader/shapes/batch_proof.h"

namespace swizzle::interpreter {
namespace {

StatusOr<Array> CopyTensor(Memory& memory, DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  if (dtype == DType::kString) return CopyStrings(memory, shape, bytes);
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory.Allocate(dtype, shape));
  if (array.bytes() != static_cast<int64_t>(bytes.size())) {
    return InvalidArgument("it has ", bytes.size(), " bytes for ", ShapeText(shape), " of ", DTypeName(dtype));
  }
  if (!bytes.empty()) std::memcpy(array.data.get(), bytes.data(), bytes.size());
  return array;
}

StatusOr<const OnnxOperator*> OperatorOf(const Node& node, int64_t opset) {
  const OnnxOperator* row = FindOnnxOperator(node.domain, node.op);
  if (row == nullptr || !row->interpreter.Runs()) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') is not supported");
  }
  if (opset < row->interpreter.first_opset) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') is supported from opset ",
                         row->interpreter.first_opset, " on");
  }
  if (row->interpreter.last_opset != 0 && opset > row->interpreter.last_opset) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') ended with opset ",
                         row->interpreter.last_opset);
  }
  return row;
}

bool IsBody(const std::pair<const std::string, Attribute>& attribute) {
  return std::holds_alternative<std::shared_ptr<const Body>>(attribute.second);
}

// Whether all are tensors of numbers.
Status CheckNumbers(const Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].IsSequence()) return InvalidArgument("input ", i, " is a sequence; it must be a tensor");
    if (inputs[i].HasStrings()) return Unimplemented("input ", i, " has strings, which are not supported here");
  }
  return {};
}

SteadyValues::Shapes ShapesOf(std::span<const TensorView> inputs) {
  SteadyValues::Shapes shapes;
  shapes.reserve(inputs.size());
  for (const TensorView& input : inputs) shapes.push_back(input.shape);
  return shapes;
}

bool Fits(const Shape& declared, const Shape& given) {
  if (declared.size() != given.size()) return false;
  for (size_t d = 0; d < given.size(); ++d) {
    if (declared[d] != -1 && declared[d] != given[d]) return false;
  }
  return true;
}

}  // namespace

StatusOr<std::shared_ptr<const Program>> Program::Make(Graph graph) {
  std::shared_ptr<Program> program(new Program());
  for (const int input : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(input)];
    program->inputs_.push_back({value.name, value.dtype, value.shape});
  }
  for (const GraphOutput& output : graph.outputs) {
    program->outputs_.push_back({output.name, output.dtype, output.shape});
  }
  for (const Node& node : graph.nodes) {
    SWIZZLE_ASSIGN_OR_RETURN(const OnnxOperator* const row, OperatorOf(node, graph.opset));
    program->nodes_.push_back(
        {FindFunction(node.op), row->interpreter.takes_any_value, std::ranges::any_of(node.attributes, IsBody)});
  }
  program->verdicts_ = std::make_shared<Verdicts>(graph.nodes.size());
  program->graph_ = std::move(graph);
  program->batch_obstacle_ = BatchObstacle(program->graph_);
  SWIZZLE_RETURN_IF_ERROR(program->TakeConstants());
  SWIZZLE_RETURN_IF_ERROR(program->TakeBodies());
  SWIZZLE_CHECK(program->MakeTurns({}));  // nodes stand in order
  program->FindLastReaders();
  return std::shared_ptr<const Program>(std::move(program));
}

Status Program::TakeConstants() {
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    std::optional<Tensor>& constant = graph_.values[i].constant;
    if (!constant) continue;
    StatusOr<Array> array = CopyTensor(*weights_, constant->dtype, constant->shape, constant->bytes);
    if (!array.ok()) return Annotate(array.status(), Concat("constant '", graph_.values[i].name, "'"));
    constants_.emplace_back(static_cast<int>(i), *std::move(array));
    constant.reset();
  }
  return {};
}

Status Program::TakeBodies() {
  for (Node& node : graph_.nodes) {
    for (auto& [name, attribute] : node.attributes) {
      auto* const body = std::get_if<std::shared_ptr<const Body>>(&attribute);
      if (body == nullptr) continue;
      SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Program> program, Make((*body)->graph));
      *body = std::make_shared<const Body>(Body{program->graph(), (*body)->captured});
      bodies_.emplace(body->get(), std::move(program));
    }
  }
  return {};
}

int64_t Program::weight_bytes() const {
  int64_t bytes = weights_->live_bytes();
  for (const auto& [body, program] : bodies_) bytes += program->weight_bytes();
  return bytes;
}

std::string Program::OperatorCounts() const {
  std::map<std::string, int> counts;
  for (const Turn& turn : turns_) {
    if (turn.part == nullptr && !turn.is_steady) ++counts[graph_.nodes[static_cast<size_t>(turn.nodes.front())].op];
  }
  std::string text;
  for (const auto& [op, count] : counts) text += Concat(text.empty() ? "" : ",", op, ":", count);
  return text;
}

Status Program::CheckInput(size_t i, const TensorView& view) const {
  const Port& port = inputs_[i];
  if (view.dtype != *port.dtype) {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(view.dtype), "; it must be ",
                           DTypeName(*port.dtype));
  }
  if (port.shape && !Fits(*port.shape, view.shape)) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(view.shape), "; it must be ",
                           ShapeText(*port.shape));
  }
  return {};
}

StatusOr<Array> Program::TakeInput(Memory& memory, size_t i, const TensorView& view) const {
  SWIZZLE_RETURN_IF_ERROR(CheckInput(i, view));
  StatusOr<Array> array = CopyTensor(memory, view.dtype, view.shape, view.bytes);
  if (!array.ok()) return Annotate(array.status(), Concat("input '", inputs_[i].name, "'"));
  return array;
}

// What a run is in the midst of.
struct Program::RunState {
  RunState(const Program& program, Memory& of_memory, Stream& of_stream)
      : memory(of_memory), stream(of_stream), values(program.graph_.values.size()), places(values.size()) {
    for (size_t value = 0; value < values.size(); ++value) places[value] = &values[value];
    for (const auto& [value, array] : program.constants_) places[static_cast<size_t>(value)] = &array;
  }

  // None: not made yet, or released.
  const Array& At(int value) const {
    static const Array kLeftOut;
    return value == kNoValue ? kLeftOut : *places[static_cast<size_t>(value)];
  }
  void Set(int value, Array array) { values[static_cast<size_t>(value)] = std::move(array); }

  std::vector<Array> ValuesOf(std::span<const int> list) const {
    std::vector<Array> found;
    found.reserve(list.size());
    for (const int value : list) found.push_back(At(value));
    return found;
  }

  Memory& memory;
  Stream& stream;
  NodeWatch watch = nullptr;
  StepGate* gate = nullptr;
  bool blames = false;                                        // as RunSupplies has it
  const std::vector<bool>* without_elements = nullptr;        // likewise
  std::vector<TurnTime>* times = nullptr;                     // null: nobody wants to know
  std::vector<Array> values;                                  // by value: those that the run makes
  std::vector<const Array*> places;                           // by value: where it is, if it is made
  std::shared_ptr<const SteadyValues::Values> given_steady;   // what steady turns make; null: they are to run
  std::optional<SteadyValues::Values> steady = std::nullopt;  // where they run, and it is to be kept: what they made
  std::vector<std::pair<int, absl::Duration>> settled = {};   // and not noted yet, if somebody wants to know the times
};

const Node& Program::MakerOf(int value) const {
  const auto makes = [value](const Node& node) { return std::ranges::find(node.outputs, value) != node.outputs.end(); };
  return *std::ranges::find_if(graph_.nodes, makes);
}

Status Program::Settle(std::span<const int> values, RunState& state) const {
  for (const int value : values) {
    if (value == kNoValue) continue;
    Array& array = state.values[static_cast<size_t>(value)];
    if (array.moved == nullptr) continue;
    const auto start = std::chrono::steady_clock::now();
    StatusOr<Array> made = Settled(array, state.memory, state.stream, nullptr);
    if (!made.ok()) return Annotate(made.status(), Describe(MakerOf(value)));
    array = *std::move(made);
    if (state.times == nullptr) continue;
    state.settled.emplace_back(value, absl::FromChrono(std::chrono::steady_clock::now() - start));
  }
  return {};
}

StatusOr<Results> Program::Compute(size_t index, const Inputs& inputs, Memory& memory, Stream& stream, StepGate* gate,
                                   bool blames, bool wants_elements) const {
  const Node& node = graph_.nodes[index];
  RunBody run_body;
  if (nodes_[index].has_bodies) {
    run_body = [&](const Body& body, const Inputs& given) {
      const Program& program = *bodies_.at(&body);
      RunState within(program, memory, stream);
      within.gate = gate;
      within.blames = blames;
      for (size_t i = 0; i < given.size(); ++i) {
        within.places[static_cast<size_t>(program.graph_.inputs[i])] = &given[i];
      }
      return program.RunTurns(within);
    };
  }
  Call call(node, graph_.opset, inputs, memory, stream, &run_body);
  call.set_gate(gate);
  call.set_wants_elements(wants_elements);
  StatusOr<Results> results = nodes_[index].function->run(call);
  if (!results.ok()) {
    const bool named = std::string(results.status().message()).starts_with(Describe(node));
    const Status said = named ? results.status() : Annotate(results.status(), Describe(node));
    return blames ? Blamed(index, inputs, memory, stream, said) : said;
  }
  for (size_t i = results->size(); i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) return Unimplemented(Describe(node), ": its output ", i, " is not supported");
  }
  return results;
}

Status Program::RunNode(size_t index, RunState& state) const {
  const Node& node = graph_.nodes[index];
  absl::InlinedVector<const Array*, 8> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (state.watch || !TakesMoved(index, i)) SWIZZLE_RETURN_IF_ERROR(Settle({&node.inputs[i], 1}, state));
    inputs.push_back(&state.At(node.inputs[i]));
  }
  const std::span<const Array* const> places(inputs);
  if (!nodes_[index].takes_any_value) {
    if (const Status status = CheckNumbers(places); !status.ok()) {
      const Status numbers = Annotate(status, Describe(node));
      return state.blames ? NoRequestHelps(numbers) : numbers;
    }
  }
  std::vector<Array> watched;
  if (state.watch) {
    watched = state.ValuesOf(node.inputs);
    SWIZZLE_RETURN_IF_ERROR(state.watch(node, watched, state.memory, state.stream));
  }
  const bool wants_elements = state.without_elements == nullptr || !(*state.without_elements)[index];
  StatusOr<Results> results = Compute(index, state.watch ? Inputs(watched) : Inputs(places), state.memory, state.stream,
                                      state.gate, state.blames, wants_elements);
  SWIZZLE_RETURN_IF_ERROR(results);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) state.Set(node.outputs[i], std::move((*results)[i]));
  }
  return {};
}

StatusOr<bool> Program::RunPart(const PartOfProgram& part, RunState& state) const {
  const std::vector<Array> inputs = state.ValuesOf(part.inputs);
  SWIZZLE_RETURN_IF_ERROR(CheckNumbers(inputs));
  SWIZZLE_ASSIGN_OR_RETURN(std::optional<Results> results,
                           part.part->Run(inputs, state.memory, state.stream, state.gate));
  if (!results) return false;
  for (size_t i = 0; i < part.outputs.size(); ++i) state.Set(part.outputs[i], std::move((*results)[i]));
  return true;
}

Status Program::RunTurn(const Turn& turn, RunState& state) const {
  if (turn.part != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(Settle(turn.part->inputs, state));
    const StatusOr<bool> taken = RunPart(*turn.part, state);
    if (taken.ok() && *taken) return {};
    const std::string what = Describe(graph_.nodes[static_cast<size_t>(turn.nodes.front())]);
    if (!taken.ok()) return Annotate(taken.status(), what);
    if (turn.part->takes_all) return Unimplemented(what, ": it is not planned for inputs of these shapes");
  }
  for (const int node : turn.nodes) SWIZZLE_RETURN_IF_ERROR(RunNode(static_cast<size_t>(node), state));
  return {};
}

StatusOr<std::vector<Array>> Program::Run(std::span<const TensorView> inputs, Stream& stream, const Limits& limits,
                                          const NodeWatch& watch, const RunSupplies& supplies) const {
  SWIZZLE_CHECK(inputs.size() == inputs_.size());
  if (supplies.blocks != nullptr) supplies.blocks->BeginRun();
  const std::shared_ptr<Memory> memory = Memory::New(limits, supplies.blocks);
  RunState state(*this, *memory, stream);
  state.watch = watch;
  state.gate = supplies.gate;
  state.times = supplies.times;
  state.blames = supplies.blames;
  state.without_elements = supplies.without_elements;
  for (size_t i = 0; i < inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(state.values[static_cast<size_t>(graph_.inputs[i])], TakeInput(*memory, i, inputs[i]));
  }
  TakeSteady(inputs, state);
  StatusOr<std::vector<Array>> results = RunTurns(state);
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  if (results.ok() && state.steady) steady_->Keep(ShapesOf(inputs), *state.steady);
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    if ((*results)[i].IsSequence()) return Unimplemented("output '", outputs_[i].name, "' is a sequence");
  }
  return results;
}

void Program::TakeSteady(std::span<const TensorView> inputs, RunState& state) const {
  if (steady_ == nullptr || state.watch) return;
  state.given_steady = steady_->Find(ShapesOf(inputs));
  if (state.given_steady == nullptr) {
    state.steady.emplace();
    return;
  }
  for (const auto& [value, array] : *state.given_steady) state.places[static_cast<size_t>(value)] = &array;
}

StatusOr<std::vector<Array>> Program::RunTurns(RunState& state) const {
  const auto release = [&](size_t turn) {
    for (const int value : released_[turn]) {
      Array& array = state.values[static_cast<size_t>(value)];
      if (!array.IsLeftOut()) array = Array();  // most of a part's never were
    }
  };
  using Clock = std::chrono::steady_clock;
  for (size_t t = 0; t < turns_.size(); ++t) {
    if (turns_[t].is_steady && state.given_steady != nullptr) {
      release(t);
      continue;
    }
    SWIZZLE_RETURN_IF_ERROR(PassGate(state.gate, static_cast<HostStream&>(state.stream)));
    const auto start = state.times == nullptr ? Clock::time_point() : Clock::now();
    SWIZZLE_RETURN_IF_ERROR(RunTurn(turns_[t], state));
    if (turns_[t].is_steady && state.steady) {
      SWIZZLE_RETURN_IF_ERROR(Settle(kept_[t], state));
      for (const int value : kept_[t]) state.steady->emplace_back(value, state.values[static_cast<size_t>(value)]);
    }
    if (state.times != nullptr) NoteTimes(turns_[t], absl::FromChrono(Clock::now() - start), state);
    release(t);
  }
  std::vector<Array> outputs;
  outputs.reserve(graph_.outputs.size());
  for (const GraphOutput& output : graph_.outputs) {
    SWIZZLE_RETURN_IF_ERROR(Settle({&output.value, 1}, state));
    outputs.push_back(state.At(output.value));
  }
  NoteSettled(state);
  return outputs;
}

// What moves elements is the time of the node that asked for it, not of the one that needs it made.
absl::Duration Program::NoteSettled(RunState& state) const {
  absl::Duration all;
  for (const auto& [value, time] : state.settled) {
    state.times->push_back({static_cast<int>(&MakerOf(value) - graph_.nodes.data()), nullptr, time});
    all += time;
  }
  state.settled.clear();
  return all;
}

void Program::NoteTimes(const Turn& turn, absl::Duration time, RunState& state) const {
  time -= NoteSettled(state);
  state.times->push_back({turn.nodes.front(), turn.part == nullptr ? nullptr : turn.part->part.get(), time});
}

}  // namespace swizzle::interpreter
