#include "server/config/config_tensors.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/model/reshaped_dims.h"

namespace swizzle {
namespace {

constexpr std::string_view kTypePrefix = "TYPE_";  // and the protocol's name, but for strings

inference::DataType ConfigType(DType dtype) {
  inference::DataType type = inference::TYPE_STRING;
  if (dtype == DType::kString) return type;
  SWIZZLE_CHECK(inference::DataType_Parse(Concat(kTypePrefix, DTypeName(dtype)), &type));
  return type;
}

Status CheckDims(const google::protobuf::RepeatedField<int64_t>& dims, std::string_view direction,
                 const std::string& name) {
  for (const int64_t dim : dims) {
    if (dim >= 1 || dim == -1) continue;
    return InvalidArgument(direction, " '", name, "' has the dimension ", dim, "; use -1 or a positive number");
  }
  return absl::OkStatus();
}

// Inputs and outputs have the same fields, in two messages.
template <typename Tensor>
StatusOr<TensorSpec> SpecOf(std::string_view direction, const Tensor& tensor) {
  if (tensor.name().empty()) return InvalidArgument("an ", direction, " has no 'name'");
  const std::optional<DType> dtype = DTypeOf(tensor.data_type());
  if (!dtype) {
    return InvalidArgument(direction, " '", tensor.name(), "' has no 'data_type'; give one, such as TYPE_FP32");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckDims(tensor.dims(), direction, tensor.name()));
  SWIZZLE_RETURN_IF_ERROR(CheckDims(tensor.reshape().shape(), direction, tensor.name()));
  Shape dims(tensor.dims().begin(), tensor.dims().end());
  if (!tensor.has_reshape()) return TensorSpec{tensor.name(), *dtype, std::move(dims)};
  const Shape shape(tensor.reshape().shape().begin(), tensor.reshape().shape().end());
  if (!DimsReshape(dims, shape)) {
    return InvalidArgument("the 'reshape' of ", direction, " '", tensor.name(), "' makes ", ShapeText(shape), " of ",
                           ShapeText(dims), "; both need as many -1s, and as many elements between them");
  }
  return TensorSpec{tensor.name(), *dtype, shape, std::move(dims)};
}

template <typename Tensors>
StatusOr<std::vector<TensorSpec>> ParseAll(std::string_view direction, const Tensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) {
    SWIZZLE_ASSIGN_OR_RETURN(TensorSpec spec, SpecOf(direction, tensor));
    for (const TensorSpec& other : specs) {
      if (other.name == spec.name) return InvalidArgument(direction, " '", spec.name, "' is there twice");
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool DimsAgree(const Shape& configured, const Shape& actual) {
  return std::equal(configured.begin(), configured.end(), actual.begin(), actual.end(),
                    [](int64_t a, int64_t b) { return a == b || a == -1 || b == -1; });
}

std::string NamesOf(const std::vector<TensorSpec>& tensors) {
  std::string names;
  for (const TensorSpec& tensor : tensors) names += Concat(names.empty() ? "'" : ", '", tensor.name, "'");
  return names;
}

// One tensor as the model has it, with dims that it fixes and the file leaves free.
StatusOr<TensorSpec> MatchTensor(std::string_view direction, const TensorSpec& configured,
                                 const std::vector<TensorSpec>& actual) {
  const auto found = std::find_if(actual.begin(), actual.end(),
                                  [&](const TensorSpec& tensor) { return tensor.name == configured.name; });
  if (found == actual.end()) {
    return InvalidArgument("the model has no ", direction, " '", configured.name, "'; it has ", NamesOf(actual));
  }
  if (configured.dtype != found->dtype || !DimsAgree(configured.dims, found->dims)) {
    return InvalidArgument(direction, " '", configured.name, "' is ", DTypeName(configured.dtype), " ",
                           ShapeText(configured.dims), " in the configuration, but ", DTypeName(found->dtype), " ",
                           ShapeText(found->dims), " in the model");
  }
  TensorSpec matched = *found;
  for (size_t i = 0; i < matched.dims.size(); ++i) {
    if (matched.dims[i] == -1) matched.dims[i] = configured.dims[i];
  }
  if (configured.reshaped) matched.reshaped = Reshaped(matched.dims, 0, configured.dims, *configured.reshaped);
  return matched;
}

// Replaces `specs` by the tensors that the file lists, in its order; a file that lists none changes nothing.
template <typename Tensors>
Status MatchAll(std::string_view direction, const Tensors& tensors, std::vector<TensorSpec>& specs) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorSpec> configured, ParseAll(direction, tensors));
  if (configured.empty()) return absl::OkStatus();
  std::vector<TensorSpec> matched;
  for (const TensorSpec& tensor : configured) {
    SWIZZLE_ASSIGN_OR_RETURN(TensorSpec spec, MatchTensor(direction, tensor, specs));
    matched.push_back(std::move(spec));
  }
  for (const TensorSpec& tensor : specs) {
    if (std::none_of(matched.begin(), matched.end(), [&](const TensorSpec& m) { return m.name == tensor.name; })) {
      return InvalidArgument("the configuration leaves out the model's ", direction, " '", tensor.name,
                             "'; list all of them, or none");
    }
  }
  specs = std::move(matched);
  return absl::OkStatus();
}

constexpr int64_t kMaxDefaultBytes = 16 << 20;  // of the largest batch

// `tensor` as the default of this input, in as many rows as a batch may have.
StatusOr<InputDefault> DefaultOf(const Tensor& tensor, const TensorSpec& input, int64_t max_batch_size) {
  const std::ptrdiff_t batch_dims = max_batch_size > 0 ? 1 : 0;
  const int64_t rows = std::max<int64_t>(max_batch_size, 1);
  const bool has_row = batch_dims == 0 || (!tensor.shape.empty() && tensor.shape.front() == 1);
  if (!has_row || tensor.dtype != input.dtype || tensor.dtype == DType::kString) {
    return InvalidArgument("its default is ", DTypeName(tensor.dtype), " ", ShapeText(tensor.shape), "; one row of ",
                           DTypeName(input.dtype), " ", ShapeText(input.dims), " is needed");
  }
  InputDefault value{Shape(tensor.shape.begin() + batch_dims, tensor.shape.end()), tensor.bytes.size(), {}};
  if (!DimsAgree(input.dims, value.dims)) {
    return InvalidArgument("its default has the shape ", ShapeText(tensor.shape), ", and its dims are ",
                           ShapeText(input.dims));
  }
  if (static_cast<int64_t>(tensor.bytes.size()) > kMaxDefaultBytes / rows) {
    return InvalidArgument("its default has ", tensor.bytes.size(), " bytes; ", rows, " rows of it may have ",
                           kMaxDefaultBytes, " at most");
  }
  for (int64_t row = 0; row < rows; ++row) {
    value.bytes.insert(value.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return value;
}

template <typename Tensor>
void Fill(const TensorSpec& spec, Tensor& tensor) {
  tensor.set_name(spec.name);
  tensor.set_data_type(ConfigType(spec.dtype));
  tensor.mutable_dims()->Add(spec.wire_dims().begin(), spec.wire_dims().end());
  if (spec.reshaped) tensor.mutable_reshape()->mutable_shape()->Add(spec.dims.begin(), spec.dims.end());
}

}  // namespace

std::optional<DType> DTypeOf(inference::DataType type) {
  if (type == inference::TYPE_STRING) return DType::kString;
  const std::string_view name = inference::DataType_Name(type);
  return name.starts_with(kTypePrefix) ? DTypeFromName(name.substr(kTypePrefix.size())) : std::nullopt;
}

StatusOr<std::vector<TensorSpec>> SpecsOf(const ConfigInputs& inputs) { return ParseAll("input", inputs); }
StatusOr<std::vector<TensorSpec>> SpecsOf(const ConfigOutputs& outputs) { return ParseAll("output", outputs); }

Status MatchTensors(const ConfigInputs& inputs, std::vector<TensorSpec>& specs) {
  return MatchAll("input", inputs, specs);
}
Status MatchTensors(const ConfigOutputs& outputs, std::vector<TensorSpec>& specs) {
  return MatchAll("output", outputs, specs);
}

Status ApplyDefaults(const ConfigInputs& inputs, const InputDefaults& defaults, ModelSpec& spec) {
  for (const inference::ModelInput& given : inputs) {
    if (!given.optional()) continue;
    const auto input = std::ranges::find(spec.inputs, given.name(), &TensorSpec::name);
    const auto found = defaults.find(given.name());
    if (input == spec.inputs.end() || found == defaults.end()) {
      return InvalidArgument("input '", given.name(),
                             "' is 'optional', but the model has no default for it: remove that, or give the model's "
                             "input an initializer of the same name");
    }
    auto value = DefaultOf(found->second, *input, spec.max_batch_size);
    if (!value.ok()) return Annotate(value.status(), Concat("input '", given.name(), "' is 'optional', but"));
    input->default_value = std::make_shared<const InputDefault>(*std::move(value));
  }
  return absl::OkStatus();
}

void FillTensor(const TensorSpec& spec, inference::ModelInput& tensor) {
  Fill(spec, tensor);
  if (spec.default_value != nullptr) tensor.set_optional(true);
}
void FillTensor(const TensorSpec& spec, inference::ModelOutput& tensor) { Fill(spec, tensor); }

}  // namespace swizzle
