#include "tests/support/onnx_builder.h"

#include <numeric>
#include <span>

#include "model_loader/onnx/onnx_reader.h"

namespace swizzle::testing {
namespace {

template <typename T>
void SetTensor(onnx::TensorProto& proto, int data_type, const Shape& shape, std::span<const T> values) {
  proto.set_data_type(data_type);
  for (int64_t dimension : shape) proto.add_dims(dimension);
  proto.set_raw_data(values.data(), values.size_bytes());
}

struct AttributeSetter {
  onnx::AttributeProto& proto;

  void operator()(int64_t value) const {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto.set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values) proto.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (float value : values) proto.add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const std::shared_ptr<const Body>&) const { SWIZZLE_CHECK(false); }  // tests add graphs by hand
  void operator()(const Tensor& tensor) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    const int type = tensor.dtype == DType::kInt64 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
    SetTensor<std::byte>(*proto.mutable_t(), type, tensor.shape, tensor.bytes);
  }
};

onnx::TensorShapeProto& AddTensorType(onnx::ValueInfoProto& info, const std::string& name) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  return *type.mutable_shape();
}

}  // namespace

OnnxBuilder::OnnxBuilder(int64_t opset) {
  model_.set_ir_version(8);
  model_.set_producer_name("builder");
  model_.add_opset_import()->set_version(opset);
  graph().set_name("test");
}

OnnxBuilder& OnnxBuilder::Input(const std::string& name, const Shape& shape) {
  onnx::TensorShapeProto& proto = AddTensorType(*graph().add_input(), name);
  for (int64_t dimension : shape) {
    if (dimension == -1) {
      proto.add_dim();
    } else {
      proto.add_dim()->set_dim_value(dimension);
    }
  }
  return *this;
}

OnnxBuilder& OnnxBuilder::Int64Input(const std::string& name, const Shape& shape) {
  Input(name, shape);
  auto& input = *graph().mutable_input(graph().input_size() - 1);
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  return *this;
}

OnnxBuilder& OnnxBuilder::Output(const std::string& name) {
  AddTensorType(*graph().add_output(), name);
  return *this;
}

OnnxBuilder& OnnxBuilder::Floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  onnx::TensorProto& proto = *graph().add_initializer();
  proto.set_name(name);
  SetTensor<float>(proto, onnx::TensorProto::FLOAT, shape, values);
  return *this;
}

OnnxBuilder& OnnxBuilder::Int64s(const std::string& name, const Shape& shape, const std::vector<int64_t>& values) {
  onnx::TensorProto& proto = *graph().add_initializer();
  proto.set_name(name);
  SetTensor<int64_t>(proto, onnx::TensorProto::INT64, shape, values);
  return *this;
}

OnnxBuilder& OnnxBuilder::Counting(const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(*ElementCount(shape)));
  std::iota(values.begin(), values.end(), 1.0f);
  return Floats(name, shape, values);
}

OnnxBuilder& OnnxBuilder::Sparse(const std::string& name, const Shape& shape, const std::vector<float>& values,
                                 const std::vector<int64_t>& indices) {
  onnx::SparseTensorProto& proto = *graph().add_sparse_initializer();
  proto.mutable_values()->set_name(name);
  SetTensor<float>(*proto.mutable_values(), onnx::TensorProto::FLOAT, {static_cast<int64_t>(values.size())}, values);
  SetTensor<int64_t>(*proto.mutable_indices(), onnx::TensorProto::INT64, {static_cast<int64_t>(indices.size())},
                     indices);
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  return *this;
}

OnnxBuilder& OnnxBuilder::Node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::map<std::string, Attribute>& attributes) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  node.set_name(outputs.front() + "_node");
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(name);
    std::visit(AttributeSetter{proto}, value);
  }
  return *this;
}

OnnxBuilder& OnnxBuilder::MicrosoftNode(const std::string& op, const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& outputs,
                                        const std::map<std::string, Attribute>& attributes) {
  Node(op, inputs, outputs, attributes);
  graph().mutable_node(graph().node_size() - 1)->set_domain("com.microsoft");
  return *this;
}

OnnxBuilder& OnnxBuilder::Body(const std::string& attribute_name, const std::vector<std::string>& inputs,
                               const OnnxBuilder& body) {
  onnx::NodeProto& node = *graph().mutable_node(graph().node_size() - 1);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(attribute_name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = body.model_.graph();
  for (const std::string& input : inputs) attribute.mutable_g()->add_input()->set_name(input);
  return *this;
}

std::vector<std::byte> OnnxBuilder::Bytes() const {
  const std::string text = model_.SerializeAsString();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

StatusOr<Graph> OnnxBuilder::Read() const { return ReadOnnx(Bytes()); }

}  // namespace swizzle::testing
