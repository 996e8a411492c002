#include "model_loader/safetensors/checkpoint_weights.h"

#include <algorithm>
#include <utility>

#include "model_loader/safetensors/tensor_names.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {

StatusOr<CheckpointWeights> CheckpointWeights::From(const EncoderConfig& config, std::string_view prefix,
                                                    const Compression& compression, TensorMap tensors) {
  CheckpointWeights weights(compression);
  while (!tensors.empty()) {
    auto node = tensors.extract(tensors.begin());
    std::string name = TensorName(config, prefix, node.key());
    if (name.empty()) continue;
    if (!weights.tensors_.emplace(name, std::move(node.mapped())).second) {
      return InvalidArgument("the checkpoint has the tensor '", name, "' twice, under two prefixes");
    }
  }
  return weights;
}

StatusOr<Tensor> CheckpointWeights::TakeAsStored(const std::string& name, const Shape& shape) {
  auto node = tensors_.extract(name);
  if (node.empty()) return InvalidArgument("the checkpoint lacks the tensor '", name, "'");
  const Shape& given = node.mapped().shape;
  const auto fits = [](int64_t is, int64_t wanted) { return wanted == -1 || is == wanted; };
  if (!std::ranges::equal(given, shape, fits)) {
    return InvalidArgument("the tensor '", name, "' has the shape ", ShapeText(given), "; it must be ",
                           ShapeText(shape));
  }
  if (std::ranges::find(given, 0) != given.end()) {
    return Unimplemented("the tensor '", name, "' has the shape ", ShapeText(given),
                         ": layers that have lost all their heads or rows are not supported");
  }
  return std::move(node.mapped());
}

// Only matrices: vectors are biases and norms, which have no scale.
bool CheckpointWeights::IsWhole(const std::string& name) const {
  const auto found = tensors_.find(name);
  return compression_.quantised && found != tensors_.end() && found->second.dtype == DType::kInt8 &&
         found->second.shape.size() == 2;
}

StatusOr<Scaling> CheckpointWeights::TakeScaling(const std::string& prefix, int64_t rows) {
  const auto take = [&](const std::string& name) -> StatusOr<Tensor> {
    auto node = tensors_.extract(name);
    if (node.empty()) return InvalidArgument("the checkpoint lacks the tensor '", name, "'");
    Tensor tensor = std::move(node.mapped());
    const int64_t count = tensor.elements();
    const bool by_rows = count == rows && (tensor.shape == Shape{rows} || tensor.shape == Shape{rows, 1});
    if (count != 1 && !by_rows) {
      return Unimplemented("the tensor '", name, "' has the shape ", ShapeText(tensor.shape),
                           "; supported are one scale, or one for each of ", rows, " rows");
    }
    tensor.shape = count == 1 ? Shape{} : Shape{rows};
    return tensor;
  };
  Scaling scaling;
  SWIZZLE_ASSIGN_OR_RETURN(Tensor scales, take(prefix + "_scale"));
  SWIZZLE_ASSIGN_OR_RETURN(scaling.scales, ToFloat32(std::move(scales), Concat("the tensor '", prefix, "_scale'")));
  const std::string zero_point = prefix + "_zero_point";
  if (Has(zero_point)) {
    SWIZZLE_ASSIGN_OR_RETURN(scaling.zero_points, take(zero_point));
  }
  const Tensor* const zeros = scaling.zero_points ? &*scaling.zero_points : nullptr;
  const auto valid = QuantisationOf(scaling.scales, zeros, zeros == nullptr ? DType::kInt8 : zeros->dtype);
  if (!valid.ok()) return Annotate(valid.status(), Concat("'", prefix, "'"));
  if (valid->dtype == DType::kInt8) return scaling;
  return Unimplemented("the tensor '", zero_point, "' is ", DTypeName(valid->dtype), "; only INT8 is supported");
}

StatusOr<Tensor> CheckpointWeights::Take(const std::string& name, const Shape& shape) {
  const bool whole = IsWhole(name);
  SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, TakeAsStored(name, shape));
  if (!whole) return ToFloat32(std::move(tensor), Concat("the tensor '", name, "'"));
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling numbers, TakeScaling(name, tensor.shape[0]));
  return DequantisedTensor(tensor, numbers.scales, numbers.zero_points ? &*numbers.zero_points : nullptr, 0);
}

StatusOr<LinearWeight> CheckpointWeights::TakeLinear(const std::string& name, const Shape& shape) {
  const std::string weight = name + ".weight";
  LinearWeight linear;
  if (compression_.activations == ActivationRounding::kNone || !IsWhole(weight)) {
    SWIZZLE_ASSIGN_OR_RETURN(linear.matrix, Take(weight, shape));
    return linear;
  }
  SWIZZLE_ASSIGN_OR_RETURN(linear.matrix, TakeAsStored(weight, shape));
  SWIZZLE_ASSIGN_OR_RETURN(linear.numbers, TakeScaling(weight, linear.matrix.shape[0]));
  if (compression_.activations == ActivationRounding::kByScale) {
    SWIZZLE_ASSIGN_OR_RETURN(linear.input, TakeScaling(name + ".input", 1));
  }
  return linear;
}

Status CheckpointWeights::CheckAllTaken() const {
  if (tensors_.empty()) return {};
  return InvalidArgument("the checkpoint has the tensor '", tensors_.begin()->first,
                         "', which is of no part of the encoder that config.json describes");
}

}  // namespace swizzle
