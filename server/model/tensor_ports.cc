#include "server/model/tensor_ports.h"

#include <algorithm>

namespace swizzle {
namespace {

std::string NamesOf(std::span<const ModelPort> ports) {
  std::string names;
  for (const ModelPort& port : ports) names += Concat(names.empty() ? "'" : ", '", port.name, "'");
  return names.empty() ? "none" : names;
}

// The index of the tensor's port.
StatusOr<int> ResolveTensor(std::span<const ModelPort> ports, const std::string& name, const ModelSpec& spec,
                            TensorSpec& tensor) {
  const auto port = std::ranges::find(ports, tensor.name, &ModelPort::name);
  if (port == ports.end()) return InvalidArgument(name, " is configured, but the model has ", NamesOf(ports));
  if (tensor.dtype != port->dtype) {
    return InvalidArgument(name, " is configured as ", DTypeName(tensor.dtype), ", but is ", DTypeName(port->dtype));
  }
  if (!DimsFit(port->dims, tensor.dims)) {
    return InvalidArgument(name, " is configured with dims ", ShapeText(tensor.dims), ", but with max_batch_size ",
                           spec.max_batch_size, " it has ", ShapeText(port->dims));
  }
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d] == -1) tensor.dims[d] = port->dims[d];
  }
  return static_cast<int>(port - ports.begin());
}

StatusOr<std::vector<int>> ResolveTensors(std::span<const ModelPort> ports, const std::string& kind,
                                          const ModelSpec& spec, std::vector<TensorSpec>& tensors) {
  std::vector<int> map;
  for (TensorSpec& tensor : tensors) {
    const std::string name = Concat(kind, " '", tensor.name, "' of model '", spec.name, "'");
    SWIZZLE_ASSIGN_OR_RETURN(const int port, ResolveTensor(ports, name, spec, tensor));
    if (std::ranges::find(map, port) != map.end()) return InvalidArgument(name, " is configured twice");
    map.push_back(port);
  }
  return map;
}

}  // namespace

bool DimsFit(const Shape& expected, const Shape& configured) {
  return std::ranges::equal(expected, configured, [](int64_t a, int64_t b) { return a == -1 || b == -1 || a == b; });
}

StatusOr<PortMap> ResolvePorts(ModelSpec& spec, std::span<const ModelPort> inputs, std::span<const ModelPort> outputs) {
  PortMap map;
  SWIZZLE_ASSIGN_OR_RETURN(map.inputs, ResolveTensors(inputs, "input", spec, spec.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(map.outputs, ResolveTensors(outputs, "output", spec, spec.outputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::ranges::find(map.inputs, static_cast<int>(i)) != map.inputs.end()) continue;
    return InvalidArgument("input '", inputs[i].name, "' of model '", spec.name, "' is not configured");
  }
  return map;
}

}  // namespace swizzle
