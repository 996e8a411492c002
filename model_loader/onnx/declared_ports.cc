#include "model_loader/onnx/declared_ports.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

// -1 for free dimensions, whether named, -1 or left out. Nothing if there is no shape.
StatusOr<std::optional<Shape>> DeclaredShape(const onnx::TypeProto::Tensor& type, const std::string& what) {
  if (!type.has_shape()) return std::optional<Shape>();
  Shape shape;
  for (const auto& dimension : type.shape().dim()) {
    const int64_t size = dimension.has_dim_value() ? dimension.dim_value() : -1;
    if (size < -1) return InvalidArgument(what, " has dimension ", size);
    shape.push_back(size);
  }
  return std::optional(std::move(shape));
}

// Of inputs and outputs; constants have no strings.
StatusOr<DType> PortType(int data_type, const std::string& what) {
  return data_type == onnx::TensorProto::STRING ? DType::kString : DTypeOfProto(data_type, what);
}

}  // namespace

StatusOr<DeclaredPort> ReadPort(const onnx::ValueInfoProto& info, const std::string& what,
                                const std::map<std::string, DeclaredPort>& known) {
  DeclaredPort port;
  const bool has_type = info.has_type() && info.type().value_case() != onnx::TypeProto::VALUE_NOT_SET;
  if (has_type && !info.type().has_tensor_type()) {
    return Unimplemented(what, " is no tensor; sequences and maps are not supported");
  }
  if (has_type) {
    const auto& type = info.type().tensor_type();
    if (type.elem_type() != onnx::TensorProto::UNDEFINED) {
      SWIZZLE_ASSIGN_OR_RETURN(port.dtype, PortType(type.elem_type(), what));
    }
    SWIZZLE_ASSIGN_OR_RETURN(port.shape, DeclaredShape(type, what));
  }
  const auto found = known.find(info.name());
  if (found == known.end()) return port;
  if (!port.dtype) port.dtype = found->second.dtype;
  if (!port.shape) port.shape = found->second.shape;
  return port;
}

expansions::Hints ReadHints(const onnx::GraphProto& graph) {
  expansions::Hints hints;
  for (const auto& info : graph.value_info()) {
    const StatusOr<DeclaredPort> port = ReadPort(info, "a value", {});
    if (port.ok()) hints[info.name()] = {port->dtype, port->shape};
  }
  return hints;
}

Status TakePlannedInput(const DeclaredPort& port, const std::string& what, Value& input) {
  if (!port.dtype || !port.shape) {
    return InvalidArgument(what, " has no tensor type with a shape: give its dims in config.pbtxt, or export the model",
                           " with them");
  }
  input.dtype = *port.dtype;
  if (input.dtype != DType::kFloat32 && input.dtype != DType::kUint8) {
    return Unimplemented(what, " is ", DTypeName(input.dtype), "; only FP32 and UINT8 are supported");
  }
  const Shape& shape = *port.shape;
  if (shape.empty()) return Unimplemented(what, " is a scalar; it must have a batch dimension");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return InvalidArgument(what, " has dimension 0; dimensions are at least 1");
    if (shape[d] == kFreeBatch && d > 0) {
      return Unimplemented(what, ": dimension ", d, " is free; only the batch, dimension 0, may be: ",
                           "export the model with the other dimensions fixed");
    }
  }
  input.shape = shape;
  return {};
}

bool HasSequences(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> initializers;
  for (const auto& initializer : graph.initializer()) initializers.insert(initializer.name());
  return std::any_of(graph.input().begin(), graph.input().end(), [&](const onnx::ValueInfoProto& input) {
    const auto& type = input.type().tensor_type();
    const bool whole = type.elem_type() == onnx::TensorProto::INT64 || type.elem_type() == onnx::TensorProto::INT32;
    return whole && type.shape().dim_size() == 2 && initializers.count(input.name()) == 0;
  });
}

Status ReadSequences(Graph& graph) {
  GraphSequences& sequences = graph.sequences.emplace();
  for (int input : graph.inputs) {
    const Value& value = graph.values[input];
    const bool whole = value.dtype == DType::kInt64 || value.dtype == DType::kInt32;
    if (!whole || !value.shape || value.shape->size() != 2) {
      return Unimplemented("graph input '", value.name, "' is ", DTypeName(value.dtype),
                           value.shape ? ShapeText(*value.shape) : "",
                           "; in a model of token sequences all inputs are [batch, length] of INT64 or INT32");
    }
    int64_t* const common[] = {&sequences.batch, &sequences.length};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t size = (*value.shape)[i];
      if (size == 0)
        return InvalidArgument("graph input '", value.name, "' has dimension 0; dimensions are at least 1");
      if (*common[i] != kFreeBatch && size != kFreeBatch && size != *common[i]) {
        return Unimplemented("graph input '", value.name, "' is ", ShapeText(*value.shape),
                             "; in a model of token sequences all inputs have the same shape");
      }
      if (size != kFreeBatch) *common[i] = size;
    }
  }
  return {};
}

}  // namespace swizzle
