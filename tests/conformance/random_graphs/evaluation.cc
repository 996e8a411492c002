#include "tests/conformance/random_graphs/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "model_loader/interpreter/run/load.h"

namespace swizzle::random_graphs {
namespace {

constexpr double kNoise = 1e-6;    // relative to the scale
constexpr double kOfMasks = 1000;  // and what is more
constexpr double kLeastScale = 1e-3;

using Random = std::minstd_rand;

Random RandomFor(uint64_t seed, const std::string& name, size_t request) {
  return Random(static_cast<uint32_t>(seed * 7919 + std::hash<std::string>()(name) % 1000003 + request * 101 + 1));
}

float Unit(Random& random) { return static_cast<float>(random() % 20001) / 10000.0f - 1.0f; }

template <typename T>
void Put(Tensor& tensor, int64_t i, T element) {
  std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
}

// Masks keep the first element of each row, so that none masks all.
Tensor DrawInput(const DrawnInput& input, const Sizes& sizes, Random random) {
  Tensor tensor;
  tensor.dtype = input.dtype;
  for (const int64_t dimension : input.shape) tensor.shape.push_back(sizes.Of(dimension));
  const int64_t count = *ElementCount(tensor.shape);
  tensor.bytes.resize(static_cast<size_t>(count) * ElementBytes(input.dtype));
  for (int64_t i = 0; i < count; ++i) {
    const bool is_first = i % tensor.shape.back() == 0;
    if (input.dtype == DType::kFloat32) {
      Put(tensor, i, Unit(random));
    } else if (input.dtype == DType::kBool) {
      Put(tensor, i, static_cast<uint8_t>(is_first || random() % 2 == 0));
    } else {
      Put(tensor, i, input.below == 2 && is_first ? int64_t{1} : static_cast<int64_t>(random() % input.below));
    }
  }
  return tensor;
}

}  // namespace

double ScaleOf(const Tensor& tensor) {
  double scale = kLeastScale;
  if (tensor.dtype != DType::kFloat32) return scale;
  for (const float element : tensor.floats()) {
    const double size = std::fabs(element);
    if (size < kOfMasks) scale = std::max(scale, size);
  }
  return scale;
}

double Distance(const Tensor& actual, const Tensor& expected) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) return kFar;
  if (actual.dtype != DType::kFloat32) return actual.bytes == expected.bytes ? 0 : kFar;
  const double scale = ScaleOf(expected);
  double most = 0;
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const double a = actual.floats()[static_cast<size_t>(i)], e = expected.floats()[static_cast<size_t>(i)];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (!std::isfinite(a) || !std::isfinite(e)) return kFar;
    most = std::max(most, std::fabs(a - e) / std::max(scale, std::fabs(e)));
  }
  return most;
}

void Evaluation::AddInput(const DrawnInput& input) {
  KnownValue value;
  value.dtype = input.dtype;
  for (size_t r = 0; r < kRequests; ++r) {
    value.exact[r] = std::make_shared<Tensor>(DrawInput(input, sizes_[r], RandomFor(seed_, input.name, r)));
    value.noisy[r] = value.exact[r];
  }
  values_[input.name] = std::move(value);
}

void Evaluation::AddConstant(const std::string& name, const Tensor& tensor) {
  const auto shared = std::make_shared<const Tensor>(tensor);
  KnownValue value;
  value.dtype = tensor.dtype;
  value.exact.fill(shared);
  value.noisy.fill(shared);
  values_[name] = std::move(value);
  constants_[name] = shared;
}

const KnownValue* Evaluation::Find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

bool Evaluation::IsExact(const DrawnNode& node) const {
  return std::ranges::all_of(node.inputs, [&](const std::string& name) {
    const auto& value = values_.find(name);
    return value == values_.end() || value->second.exact == value->second.noisy;
  });
}

Evaluation::Tensors Evaluation::InputsOf(const DrawnNode& node, size_t request, bool noisy) const {
  Tensors tensors;
  std::vector<std::string> seen;
  for (const std::string& name : node.inputs) {
    if (name.empty() || constants_.contains(name) || std::ranges::find(seen, name) != seen.end()) continue;
    seen.push_back(name);
    const KnownValue& value = values_.at(name);
    tensors.push_back((noisy ? value.noisy : value.exact)[request]);
  }
  return tensors;
}

Status Evaluation::MakeNoisy(const std::string& name, const Tensor& exact, Tensor& noisy, double& drift) const {
  const double distance = Distance(noisy, exact);
  if (!(distance <= kMostDrift)) return InvalidArgument("'", name, "' goes by roundings");
  drift = std::max(drift, distance);
  const double scale = ScaleOf(exact) * kNoise;
  Random random = RandomFor(seed_, name, 17);
  if (noisy.dtype != DType::kFloat32) return {};
  for (float& element : noisy.floats()) element += static_cast<float>(scale) * Unit(random);
  return {};
}

namespace {

StatusOr<std::vector<Tensor>> RunOn(const interpreter::Program& program,
                                    const std::vector<std::shared_ptr<const Tensor>>& inputs, Stream& stream) {
  std::vector<TensorView> views;
  for (const auto& input : inputs) views.push_back({input->dtype, input->shape, input->bytes});
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<interpreter::Array> outputs, program.Run(views, stream));
  std::vector<Tensor> tensors;
  for (const interpreter::Array& output : outputs) {
    const auto bytes = output.AsBytes();
    tensors.push_back({output.dtype, output.shape, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

Status CheckResult(const std::string& name, const Tensor& tensor) {
  const int64_t count = tensor.elements();
  if (count == 0 || count > kMostElements) return InvalidArgument("'", name, "' has ", count, " elements");
  if (tensor.shape.size() > 6) return InvalidArgument("'", name, "' has many dimensions");
  const DType dtype = tensor.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kInt64 && dtype != DType::kBool) {
    return InvalidArgument("'", name, "' has another type");
  }
  if (tensor.dtype != DType::kFloat32) return {};
  for (const float element : tensor.floats()) {
    const bool is_mask = element < -kOfMasks;
    if (std::isnan(element) || (!is_mask && std::fabs(element) > kOfMasks / 4)) {
      return InvalidArgument("'", name, "' has an element ", element);
    }
  }
  return {};
}

}  // namespace

DrawnGraph Evaluation::Alone(const DrawnNode& node, int64_t opset) const {
  DrawnGraph alone;
  alone.opset = opset;
  alone.nodes = {node};
  for (const std::string& name : node.inputs) {
    if (name.empty()) continue;
    const auto constant = constants_.find(name);
    if (constant != constants_.end()) {
      alone.constants[name] = *constant->second;
    } else if (std::ranges::none_of(alone.inputs, [&](const DrawnInput& input) { return input.name == name; })) {
      const KnownValue& value = values_.at(name);
      alone.inputs.push_back({name, value.dtype, Shape(value.ShapeIn(0).size(), kRows)});
    }
  }
  for (const std::string& name : node.outputs) alone.outputs.push_back({name});
  return alone;
}

Status Evaluation::AddNode(const DrawnNode& node, int64_t opset) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto program,
                           interpreter::ReadProgram(Alone(node, opset).Bytes(), {}, interpreter::Nodes::kAll));
  std::vector<KnownValue> made(node.outputs.size());
  const bool is_exact = IsExact(node);
  for (size_t r = 0; r < kRequests; ++r) {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<Tensor> exact, RunOn(*program, InputsOf(node, r, false), stream_));
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<Tensor> noisy, is_exact ? StatusOr<std::vector<Tensor>>(exact)
                                                                 : RunOn(*program, InputsOf(node, r, true), stream_));
    for (size_t i = 0; i < made.size(); ++i) {
      SWIZZLE_RETURN_IF_ERROR(CheckResult(node.outputs[i], exact[i]));
      if (!is_exact) SWIZZLE_RETURN_IF_ERROR(MakeNoisy(node.outputs[i], exact[i], noisy[i], made[i].drift));
      made[i].dtype = exact[i].dtype;
      made[i].exact[r] = std::make_shared<Tensor>(std::move(exact[i]));
      const bool has_noise = !is_exact && made[i].dtype == DType::kFloat32;
      made[i].noisy[r] = has_noise ? std::make_shared<Tensor>(std::move(noisy[i])) : made[i].exact[r];
    }
  }
  for (size_t i = 0; i < made.size(); ++i) values_[node.outputs[i]] = std::move(made[i]);
  return {};
}

Status Evaluation::Add(const DrawnGraph& graph) {
  for (const DrawnInput& input : graph.inputs) AddInput(input);
  for (const auto& [name, tensor] : graph.constants) AddConstant(name, tensor);
  for (const DrawnNode& node : graph.nodes) {
    for (const std::string& name : node.inputs) {
      if (!name.empty() && Find(name) == nullptr) return InvalidArgument("nothing makes '", name, "'");
    }
    SWIZZLE_RETURN_IF_ERROR(AddNode(node, graph.opset));
  }
  for (const DrawnOutput& output : graph.outputs) {
    if (Find(output.name) == nullptr) return InvalidArgument("nothing makes '", output.name, "'");
  }
  return {};
}

}  // namespace swizzle::random_graphs
