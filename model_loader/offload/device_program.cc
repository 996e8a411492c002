#include "model_loader/offload/device_program.h"

#include <algorithm>
#include <utility>

#include "model_loader/graph/shape_flow.h"
#include "model_loader/offload/runner.h"

namespace swizzle::offload {
namespace {

using interpreter::Array;
using interpreter::Program;

interpreter::Limits NoLimits() { return {.max_array_bytes = int64_t{1} << 40, .max_live_bytes = int64_t{1} << 40}; }

}  // namespace

std::string Placement::OperatorCounts() const {
  std::string text;
  for (const auto& [op, count] : operators) text += Concat(text.empty() ? "" : ",", op, ":", count);
  return text;
}

DeviceProgram::DeviceProgram(std::shared_ptr<const Program> program, Traits traits, Backend& host,
                             DeviceBackend& device, const DeviceFunctions& functions)
    : program_(std::move(program)),
      traits_(traits),
      host_(host),
      device_(device),
      functions_(functions),
      constants_(program_->constants().begin(), program_->constants().end()),
      by_elements_(GoByElements(program_->graph())),
      memory_(interpreter::Memory::NewOnDevice(NoLimits(), DeviceStore(device).store)) {
  for (const Program::Turn& turn : program_->turns()) {
    const Node& node = program_->graph().nodes[static_cast<size_t>(turn.nodes.front())];
    picks_ |= turn.part == nullptr && node.op == "Gather";
  }
}

Status DeviceProgram::Try(const std::vector<Shape>& inputs, const interpreter::Limits& limits) {
  SWIZZLE_RETURN_IF_ERROR(CheckValues());
  std::vector<std::vector<std::byte>> zeros;
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(inputs[i]));
    const DType dtype = *program_->inputs()[i].dtype;
    zeros.emplace_back(static_cast<size_t>(elements) * ElementBytes(dtype));
    views.push_back({dtype, inputs[i], {}});
  }
  for (size_t i = 0; i < views.size(); ++i) views[i].bytes = zeros[i];
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner, Runner::Make(*this, host_, 1, limits));
  SWIZZLE_RETURN_IF_ERROR(runner->Run(views));
  placement_ = runner->placement();
  run_memory_.bytes = static_cast<int64_t>(runner->held_bytes());
  if (!inputs.empty() && !inputs[0].empty()) run_memory_.rows = std::max<int64_t>(inputs[0][0], 1);
  return {};
}

Status DeviceProgram::CheckValues() const {
  for (const interpreter::Port& port : program_->inputs()) {
    if (!port.dtype || ElementBytes(*port.dtype) == 0) {
      return Unimplemented("input '", port.name, "': a device takes numbers alone");
    }
  }
  for (const Node& node : program_->graph().nodes) {
    for (const auto& [name, attribute] : node.attributes) {
      if (!std::holds_alternative<std::shared_ptr<const Body>>(attribute)) continue;
      return Unimplemented(Describe(node), ": graphs within nodes run on the host alone");
    }
  }
  return {};
}

uint64_t DeviceProgram::version() const {
  uint64_t version = 0;  // of all parts; none ever becomes less
  for (const Program::Turn& turn : program_->turns()) {
    if (turn.part != nullptr) version += turn.part->part->version();
  }
  return version;
}

StatusOr<std::unique_ptr<interpreter::ProgramRunner>> DeviceProgram::NewRunner(
    int threads, const interpreter::Limits& limits) const {
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, Runner::Make(*this, host_, threads, limits));
  return std::unique_ptr<interpreter::ProgramRunner>(std::move(runner));
}

StatusOr<Array> DeviceProgram::Constant(int value, DeviceStream& stream) const {
  MutexLock lock(mutex_);
  if (const auto found = uploaded_.find(value); found != uploaded_.end()) return found->second;
  const Array& host = constants_.at(value);
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory_->Allocate(host.dtype, host.shape));
  stream.Copy(array.data.get(), host.data.get(), static_cast<size_t>(host.bytes()));
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  return uploaded_[value] = std::move(array);
}

int64_t DeviceProgram::constant_bytes() const {
  MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [value, array] : uploaded_) bytes += array.bytes();
  return bytes;
}

}  // namespace swizzle::offload
