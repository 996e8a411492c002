#include "server/model/derived_spec.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace swizzle {
namespace {

using interpreter::Port;

// A port's dimensions as a specification with this max_batch_size has them.
Shape SpecDims(const Port& port, int64_t max_batch_size) {
  const Shape& shape = *port.shape;
  return max_batch_size > 0 ? Shape(shape.begin() + 1, shape.end()) : shape;
}

StatusOr<TensorSpec> SpecOf(const Port& port, const std::string& kind, int64_t max_batch_size) {
  if (!port.dtype || !port.shape) {
    return Unimplemented(kind, " '", port.name, "' is declared without type or shape, which serving needs: give ",
                         "both in config.pbtxt, or run onnx.shape_inference.infer_shapes on the model");
  }
  return TensorSpec{port.name, *port.dtype, SpecDims(port, max_batch_size)};
}

// REQUIRES: types and shapes are declared.
std::vector<ModelPort> PortsOf(const std::vector<Port>& ports, int64_t max_batch_size) {
  std::vector<ModelPort> made;
  for (const Port& port : ports) made.push_back({port.name, *port.dtype, SpecDims(port, max_batch_size)});
  return made;
}

Status CheckBatchSize(const ModelSpec& spec, const ModelInterface& interface, const Plan* plan) {
  if (spec.max_batch_size == 0) return absl::OkStatus();
  if (interface.fixed_batch != 0) {
    return InvalidArgument("model '", spec.name, "' has a batch dimension fixed at ", interface.fixed_batch,
                           ": max_batch_size must be 0, not ", spec.max_batch_size);
  }
  if (interface.batch_obstacle) {
    return InvalidArgument(
        "model '", spec.name,
        "' runs on the interpreter, and its requests are not known to be independent of each other (",
        *interface.batch_obstacle, "): max_batch_size must be 0, not ", spec.max_batch_size);
  }
  if (plan != nullptr && spec.max_batch_size > plan->max_batch()) {
    return InvalidArgument("model '", spec.name, "' is planned for at most ", plan->max_batch(),
                           " rows: max_batch_size ", spec.max_batch_size, " is too large");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<ModelSpec> DeriveSpec(const ModelInterface& interface) {
  ModelSpec spec;
  spec.backend = "swizzle";
  const bool shares_batches = interface.fixed_batch == 0 && !interface.batch_obstacle;
  spec.max_batch_size = shares_batches ? kDerivedMaxBatchSize : 0;
  spec.batch_obstacle = interface.batch_obstacle.value_or("");
  if (interface.has_sequences) spec.max_batch_tokens = PlanOptions().max_tokens;
  for (const Port& port : interface.inputs) {
    SWIZZLE_ASSIGN_OR_RETURN(spec.inputs.emplace_back(), SpecOf(port, "input", spec.max_batch_size));
  }
  for (const Port& port : interface.outputs) {
    SWIZZLE_ASSIGN_OR_RETURN(spec.outputs.emplace_back(), SpecOf(port, "output", spec.max_batch_size));
  }
  return spec;
}

RunnableModel WithServedInputs(RunnableModel model, const ModelSpec& spec) {
  auto* const unplanned = std::get_if<ProgramModel>(&model);
  if (unplanned == nullptr) return model;
  std::vector<Port> inputs = unplanned->program->inputs();
  for (Port& port : inputs) {
    const auto served = std::ranges::find(spec.inputs, port.name, &TensorSpec::name);
    if (served == spec.inputs.end() || !port.shape) return model;
    const size_t first = port.shape->size() - served->dims.size();
    if (!DimsFit(SpecDims(port, spec.max_batch_size), served->dims)) return model;
    for (size_t d = 0; d < served->dims.size(); ++d) {
      if (served->dims[d] != -1) (*port.shape)[first + d] = served->dims[d];
    }
  }
  unplanned->program = unplanned->program->WithInputs(std::move(inputs));
  return model;
}

StatusOr<PortMap> FitSpec(ModelSpec& spec, const CompiledModel& model) {
  const ModelInterface interface = model.interface();
  SWIZZLE_RETURN_IF_ERROR(CheckBatchSize(spec, interface, model.plan().get()));
  return ResolvePorts(spec, PortsOf(interface.inputs, spec.max_batch_size),
                      PortsOf(interface.outputs, spec.max_batch_size));
}

}  // namespace swizzle
