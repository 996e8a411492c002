#include "model_loader/offload/pass.h"

#include <algorithm>
#include <utility>

#include "model_loader/graph/operator_table.h"
#include "model_loader/graph/shape_flow.h"
#include "model_loader/interpreter/values/settle.h"

namespace swizzle::offload {

using interpreter::Array;
using interpreter::Memory;
using interpreter::Results;

namespace {

// Memory of a buffer as an array that shares it.
Array ArrayIn(std::shared_ptr<Buffer> buffer, DType dtype, Shape shape) {
  std::byte* const data = buffer->data();
  return {dtype, std::move(shape), std::shared_ptr<std::byte[]>(std::move(buffer), data)};
}

}  // namespace

Pass::Pass(const DeviceProgram& program, ShapeState& state, std::span<const InputCopies> copies, Streams streams,
           const interpreter::Limits& limits, bool recording, int32_t* bad_index)
    : program_(program),
      state_(state),
      copies_(copies),
      streams_(streams),
      recording_(recording),
      bad_index_(bad_index),
      memory_(Memory::NewOnDevice(limits, state.memory)),
      host_memory_(Memory::New(limits)),
      values_(program.program().graph().values.size()),
      recordable_(program.shapes_follow()) {
  if (!recording) state.used.clear();
  for (const auto& [value, array] : program.program().constants()) At(value).host = array;
}

// What is recorded reads the memory that its pass took for an input: whoever replays it copies the input there before.
Status Pass::PlaceInputs() {
  const std::vector<int>& inputs = program_.program().graph().inputs;
  if (recording_) state_.direct.assign(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = *program_.program().inputs()[i].dtype;
    if (copies_[i].empty()) {
      At(inputs[i]).host = ArrayIn(state_.inputs[i], dtype, state_.shapes[i]);
      continue;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Array array, memory_->Allocate(dtype, state_.shapes[i]));
    At(inputs[i]).device = array;
    if (recording_) {
      state_.direct[i] = array.data.get();
    } else {
      QueueCopies(copies_[i], array.data.get(), streams_.device);
    }
  }
  return {};
}

Status Pass::Run() {
  SWIZZLE_RETURN_IF_ERROR(PlaceInputs());
  const std::span<const interpreter::Program::Turn> turns = program_.program().turns();
  for (size_t t = 0; t < turns.size(); ++t) {
    SWIZZLE_RETURN_IF_ERROR(RunTurn(turns[t]));
    for (const int value : program_.program().released_after(t)) At(value) = Value();
  }
  return FetchOutputs();
}

StatusOr<Array> Pass::Copied(const Array& host) {
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory_->Allocate(host.dtype, host.shape));
  if (host.bytes() > 0) {
    streams_.device.Copy(array.data.get(), host.data.get(), static_cast<size_t>(host.bytes()));
    kept_.push_back(host);
  }
  return array;
}

StatusOr<Array> Pass::Upload(const Array& array) {
  if (!program_.shapes_follow()) return Copied(array);
  const std::pair<int, int> key = {node_, uploads_of_node_++};
  if (const auto found = state_.tables.find(key); found != state_.tables.end()) return found->second;
  SWIZZLE_ASSIGN_OR_RETURN(Array copy, Copied(array));
  return state_.tables[key] = std::move(copy);
}

StatusOr<Array> Pass::OnDevice(int value, bool moved) {
  Value& known = At(value);
  if (!known.device.IsLeftOut()) {
    if (!moved) {
      SWIZZLE_ASSIGN_OR_RETURN(known.device, Settled(known.device, *memory_, streams_.device, this));
    }
    return known.device;
  }
  if (program_.IsConstant(value)) {
    SWIZZLE_ASSIGN_OR_RETURN(known.device, program_.Constant(value, streams_.device));
    return known.device;
  }
  const bool keeps = program_.shapes_follow() && program_.IsStable(value);
  if (const auto found = state_.stable.find(value); keeps && found != state_.stable.end()) return found->second;
  SWIZZLE_ASSIGN_OR_RETURN(const Array host, OnHost(value));
  SWIZZLE_ASSIGN_OR_RETURN(known.device, Copied(host));
  if (keeps) state_.stable[value] = known.device;
  return known.device;
}

StatusOr<Array> Pass::OnHost(int value, bool moved) {
  Value& known = At(value);
  if (!known.host.IsLeftOut()) {
    if (!moved) {
      SWIZZLE_ASSIGN_OR_RETURN(known.host, Settled(known.host, *host_memory_, streams_.host, nullptr));
    }
    return known.host;
  }
  if (recording_) return MakeError(StatusCode::kInternal, "what is recorded reads the device's memory");
  const std::vector<int>& inputs = program_.program().graph().inputs;
  const auto input = std::ranges::find(inputs, value);
  if (input != inputs.end()) returned_.push_back(static_cast<size_t>(input - inputs.begin()));
  SWIZZLE_ASSIGN_OR_RETURN(const Array device, OnDevice(value));
  SWIZZLE_ASSIGN_OR_RETURN(known.host, host_memory_->Allocate(device.dtype, device.shape));
  if (device.bytes() > 0) {
    streams_.device.Copy(known.host.data.get(), device.data.get(), static_cast<size_t>(device.bytes()));
  }
  SWIZZLE_RETURN_IF_ERROR(streams_.device.Synchronize());
  return known.host;
}

Status Pass::RunTurn(const interpreter::Program::Turn& turn) {
  if (turn.part != nullptr) {
    node_ = turn.nodes.front();
    uploads_of_node_ = 0;
    const StatusOr<bool> taken = RunPart(*turn.part);
    const std::string what = Describe(NodeAt(turn.nodes.front()));
    if (!taken.ok()) return Annotate(taken.status(), what);
    if (*taken) return {};
    if (turn.part->takes_all) return Unimplemented(what, ": it is not planned for inputs of these shapes");
  }
  for (const int node : turn.nodes) SWIZZLE_RETURN_IF_ERROR(RunNode(node));
  return {};
}

StatusOr<bool> Pass::RunPart(const interpreter::PartOfProgram& part) {
  std::vector<Array> inputs;
  for (const int input : part.inputs) {
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), OnDevice(input));
  }
  SWIZZLE_ASSIGN_OR_RETURN(std::optional<Results> results, part.part->RunOnDevice(inputs, *this));
  if (!results) return false;
  for (size_t i = 0; i < part.outputs.size(); ++i) At(part.outputs[i]) = {{}, std::move((*results)[i])};
  return true;
}

Status Pass::RunNode(int index) {
  const Node& node = NodeAt(index);
  const bool stable =
      std::ranges::all_of(node.outputs, [&](int output) { return output == kNoValue || program_.IsStable(output); });
  const DeviceOperator* const function = stable ? nullptr : FindDeviceOperator(node.domain, node.op);
  if (function != nullptr) {
    StatusOr<Results> results = RunOnDevice(index, *function);
    if (results.ok()) {
      ++placement_.device_nodes;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNoValue) At(node.outputs[i]) = {{}, std::move((*results)[i])};
      }
      return {};
    }
    if (results.status().code() != StatusCode::kUnimplemented) return Annotate(results.status(), Describe(node));
  }
  placement_.on_host.insert(index);
  if (stable) {
    ++placement_.shape_nodes;
  } else {
    ++placement_.host_nodes;
    ++placement_.operators[node.op];
    recordable_ = false;
  }
  return RunOnHost(index);
}

StatusOr<Results> Pass::RunOnDevice(int index, const DeviceOperator& function) {
  const Node& node = NodeAt(index);
  node_ = index;
  uploads_of_node_ = 0;
  const OperatorFacts facts = FactsOf(node.domain, node.op);
  std::vector<Array> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int value = node.inputs[i];
    if (value == kNoValue) continue;
    const bool on_host = facts.IsSetting(i);
    if (on_host && !program_.IsStable(value)) recordable_ = false;
    SWIZZLE_ASSIGN_OR_RETURN(inputs[i], on_host ? OnHost(value) : OnDevice(value, function.Takes(i)));
  }
  interpreter::Call call(node, program_.program().graph().opset, inputs, *memory_, streams_.device, nullptr, this);
  SWIZZLE_ASSIGN_OR_RETURN(Results results, function.run(call));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue && i >= results.size()) return Unimplemented("its output ", i, " is not made");
  }
  return results;
}

Status Pass::RunOnHost(int index) {
  const Node& node = NodeAt(index);
  std::vector<Array> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Value& value = At(node.inputs[i]);
    if (ReadsShapesAlone(node)) {
      inputs[i] = value.host.IsLeftOut() ? value.device : value.host;
      continue;
    }
    const bool moved = program_.program().TakesMoved(static_cast<size_t>(index), i);
    SWIZZLE_ASSIGN_OR_RETURN(inputs[i], OnHost(node.inputs[i], moved));
  }
  SWIZZLE_ASSIGN_OR_RETURN(Results results, program_.program().Compute(static_cast<size_t>(index), inputs,
                                                                       *host_memory_, streams_.host, nullptr, true));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (results[i].IsSequence() || results[i].HasStrings()) {
      return Unimplemented(Describe(node), ": a device's programs hold no sequences and no strings");
    }
    At(node.outputs[i]) = {std::move(results[i]), {}};
  }
  return {};
}

Status Pass::FetchOutputs() {
  const std::vector<GraphOutput>& outputs = program_.program().graph().outputs;
  state_.outputs.resize(outputs.size());
  state_.results.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!At(outputs[i].value).host.IsLeftOut()) {
      // What is staged belongs to the next run, too.
      recordable_ &= program_.IsStable(outputs[i].value);
      SWIZZLE_ASSIGN_OR_RETURN(state_.results[i], OnHost(outputs[i].value));
      continue;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Array made, OnDevice(outputs[i].value));
    const auto bytes = static_cast<size_t>(made.bytes());
    std::shared_ptr<Buffer>& buffer = state_.outputs[i];
    if (buffer == nullptr || buffer->bytes() < bytes) {
      if (recording_) return MakeError(StatusCode::kInternal, "what is recorded has no room for its outputs");
      SWIZZLE_ASSIGN_OR_RETURN(buffer, program_.device().AllocateHost(bytes));
    }
    if (bytes > 0) streams_.device.Copy(buffer->data(), made.data.get(), bytes);
    state_.results[i] = ArrayIn(buffer, made.dtype, made.shape);
  }
  return {};
}

}  // namespace swizzle::offload
