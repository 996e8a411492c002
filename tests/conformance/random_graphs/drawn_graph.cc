#include "tests/conformance/random_graphs/drawn_graph.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "model_loader/graph/print.h"
#include "model_loader/interpreter/operators/functions.h"
#include "model_loader/onnx/onnx_reader.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::random_graphs {
namespace {

using swizzle::testing::OnnxBuilder;

int OnnxTypeOf(DType dtype) {
  if (dtype == DType::kBool) return onnx::TensorProto::BOOL;
  return dtype == DType::kInt64 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
}

template <typename T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  std::vector<T> elements(tensor.bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

std::string NameOf(int64_t dimension) {
  return dimension == kRows ? "batch" : dimension == kLength ? "length" : "width";
}

void SetShape(const Shape& shape, bool with_names, onnx::TensorShapeProto& proto) {
  proto.clear_dim();
  for (const int64_t dimension : shape) {
    auto& dim = *proto.add_dim();
    if (dimension >= 0) {
      dim.set_dim_value(dimension);
    } else if (with_names) {
      dim.set_dim_param(NameOf(dimension));
    }
  }
}

}  // namespace

DrawnGraph DrawnGraph::Pruned() const {
  std::set<std::string> needed;
  for (const DrawnOutput& output : outputs) needed.insert(output.name);
  DrawnGraph kept = *this;
  kept.nodes.clear();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_needed = std::ranges::any_of(node->outputs, [&](const auto& name) { return needed.contains(name); });
    if (!is_needed) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    kept.nodes.push_back(*node);
  }
  std::ranges::reverse(kept.nodes);
  std::erase_if(kept.constants, [&](const auto& constant) { return !needed.contains(constant.first); });
  std::erase_if(kept.inputs, [&](const DrawnInput& input) { return !needed.contains(input.name); });
  if (kept.inputs.empty() && !inputs.empty()) kept.inputs.push_back(inputs.front());
  return kept;
}

std::vector<std::byte> DrawnGraph::Bytes() const {
  OnnxBuilder builder(opset);
  for (const DrawnInput& input : inputs) {
    builder.Input(input.name, Shape(input.shape.size(), 1));
    auto& type =
        *builder.graph().mutable_input(builder.graph().input_size() - 1)->mutable_type()->mutable_tensor_type();
    type.set_elem_type(OnnxTypeOf(input.dtype));
    SetShape(input.shape, names_axes, *type.mutable_shape());
  }
  for (const auto& [name, tensor] : constants) {
    if (tensor.dtype == DType::kInt64) {
      builder.Int64s(name, tensor.shape, ElementsOf<int64_t>(tensor));
    } else {
      builder.Floats(name, tensor.shape, ElementsOf<float>(tensor));
    }
  }
  for (const DrawnNode& node : nodes) builder.Node(node.op, node.inputs, node.outputs, node.attributes);
  for (const DrawnOutput& output : outputs) {
    builder.Output(output.name);
    auto& info = *builder.graph().mutable_output(builder.graph().output_size() - 1);
    info.clear_type();
    if (!output.dtype) continue;
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(OnnxTypeOf(*output.dtype));
    if (declares_shapes) SetShape(output.shape, names_axes, *type.mutable_shape());
  }
  return builder.Bytes();
}

std::string DrawnGraph::Text() const {
  ReadOptions options;
  options.min_opset = interpreter::kFirstOpset;
  options.max_opset = interpreter::kLastOpset;
  options.find_operator = FindInterpretedOperator;
  options.any_inputs = true;
  const StatusOr<Graph> graph = ReadOnnx(Bytes(), options);
  return graph.ok() ? Print(*graph) : Concat("it can't be read: ", std::string(graph.status().message()), "\n");
}

}  // namespace swizzle::random_graphs
