#include "model_loader/graph/graph.h"

#include <cstring>

namespace swizzle {
namespace {

template <typename T>
Tensor MakeTensor(DType dtype, Shape shape, std::span<const T> values) {
  Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(values.size_bytes())};
  SWIZZLE_CHECK(tensor.elements() == static_cast<int64_t>(values.size()));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), values.size_bytes());
  return tensor;
}

template <typename T>
StatusOr<T> TypedAttribute(const Node& node, const std::string& name, T absent, const char* type) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return absent;
  if (const T* attribute = std::get_if<T>(&found->second)) return *attribute;
  return InvalidArgument(Describe(node), ": attribute '", name, "' is not ", type);
}

}  // namespace

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t dimension : shape) count *= dimension;
  return count;
}

std::span<const float> Tensor::floats() const {
  SWIZZLE_CHECK(dtype == DType::kFloat32);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<float> Tensor::floats() {
  SWIZZLE_CHECK(dtype == DType::kFloat32);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Tensor Tensor::Floats(Shape shape, std::span<const float> values) {
  return MakeTensor(DType::kFloat32, std::move(shape), values);
}

Tensor Tensor::Int64s(Shape shape, std::span<const int64_t> values) {
  return MakeTensor(DType::kInt64, std::move(shape), values);
}

int Graph::AddValue(Value value) {
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
}

int Graph::AddConstant(std::string constant_name, Tensor tensor) {
  Shape shape = tensor.shape;
  return AddValue({std::move(constant_name), tensor.dtype, std::move(shape), std::move(tensor)});
}

std::string Describe(const Node& node) { return Concat(node.op, " node '", node.name, "'"); }

StatusOr<int64_t> IntAttribute(const Node& node, const std::string& name, int64_t absent) {
  return TypedAttribute<int64_t>(node, name, absent, "an integer");
}

StatusOr<float> FloatAttribute(const Node& node, const std::string& name, float absent) {
  return TypedAttribute<float>(node, name, absent, "a float");
}

StatusOr<std::string> StringAttribute(const Node& node, const std::string& name, const std::string& absent) {
  return TypedAttribute<std::string>(node, name, absent, "a string");
}

StatusOr<std::vector<int64_t>> IntsAttribute(const Node& node, const std::string& name, std::vector<int64_t> absent) {
  return TypedAttribute<std::vector<int64_t>>(node, name, std::move(absent), "a list of integers");
}

}  // namespace swizzle
