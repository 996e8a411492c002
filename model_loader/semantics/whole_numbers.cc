#include "model_loader/semantics/whole_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

constexpr int32_t kSteps = 255;  // from the least of an 8-bit type to the greatest

int32_t LeastOf(DType dtype) { return dtype == DType::kInt8 ? -128 : 0; }

// The element of an 8-bit or INT32 tensor.
int64_t WholeAt(const Tensor& tensor, size_t i) {
  if (tensor.dtype == DType::kInt8) return static_cast<int8_t>(tensor.bytes[i]);
  if (tensor.dtype == DType::kUint8) return static_cast<uint8_t>(tensor.bytes[i]);
  SWIZZLE_CHECK(tensor.dtype == DType::kInt32);
  int32_t whole = 0;
  std::memcpy(&whole, tensor.bytes.data() + i * sizeof(whole), sizeof(whole));
  return whole;
}

bool IsWholeType(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt32; }

Status CheckScales(const Tensor& scales, const Tensor* zero_points) {
  if (scales.dtype != DType::kFloat32) {
    return Unimplemented("its scale is ", DTypeName(scales.dtype), "; only FP32 is supported");
  }
  if (scales.elements() < 1 || scales.shape.size() > 1) {
    return Unimplemented("its scale ", ShapeText(scales.shape), " is neither one number nor one per channel");
  }
  if (zero_points == nullptr) return {};
  if (zero_points->elements() != scales.elements()) {
    return InvalidArgument("it has ", scales.elements(), " scales and ", zero_points->elements(), " zero points");
  }
  if (IsWholeType(zero_points->dtype)) return {};
  return Unimplemented("its zero point is ", DTypeName(zero_points->dtype), "; only INT8 and UINT8 are supported");
}

// How the elements of a tensor go by channels: `outer` times so many channels of `inner` elements each.
struct ChannelWalk {
  int64_t channels = 1;
  int64_t inner = 1;

  size_t ChannelOf(int64_t element) const { return static_cast<size_t>(element / inner % channels); }
};

StatusOr<ChannelWalk> WalkOf(const Shape& shape, size_t scales, int64_t axis) {
  ChannelWalk walk;
  if (scales == 1) return walk;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || shape[static_cast<size_t>(axis)] != static_cast<int64_t>(scales)) {
    return InvalidArgument("its ", scales, " scales do not fit axis ", axis, " of ", ShapeText(shape));
  }
  walk.channels = static_cast<int64_t>(scales);
  for (auto i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) walk.inner *= shape[i];
  walk.inner = std::max<int64_t>(walk.inner, 1);
  return walk;
}

}  // namespace

StatusOr<Quantisation> QuantisationOf(const Tensor& scales, const Tensor* zero_points, DType dtype) {
  SWIZZLE_RETURN_IF_ERROR(CheckScales(scales, zero_points));
  if (dtype != DType::kInt8 && dtype != DType::kUint8) {
    return Unimplemented("it is quantised to ", DTypeName(dtype), "; only INT8 and UINT8 are supported");
  }
  Quantisation quantisation{dtype, {scales.floats().begin(), scales.floats().end()}, {}};
  for (float& scale : quantisation.scales) {
    if (!std::isfinite(scale) || scale < 0.0f) return Unimplemented("its scale ", scale, " is not a number above 0");
    if (scale == 0.0f) scale = 1.0f;
  }
  bool any = false;
  for (size_t i = 0; zero_points != nullptr && i < quantisation.scales.size(); ++i) {
    quantisation.zero_points.push_back(static_cast<int32_t>(WholeAt(*zero_points, i)));
    any = any || quantisation.zero_points.back() != 0;
  }
  if (!any) quantisation.zero_points.clear();
  return quantisation;
}

StatusOr<Tensor> DequantisedTensor(const Tensor& wholes, const Tensor& scales, const Tensor* zero_points,
                                   int64_t axis) {
  SWIZZLE_RETURN_IF_ERROR(CheckScales(scales, zero_points));
  if (!IsWholeType(wholes.dtype)) {
    return Unimplemented("it is ", DTypeName(wholes.dtype), "; only INT8, UINT8 and INT32 are supported");
  }
  if (zero_points != nullptr && zero_points->dtype != wholes.dtype) {
    return InvalidArgument("its zero point is ", DTypeName(zero_points->dtype), ", its numbers are ",
                           DTypeName(wholes.dtype));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const ChannelWalk walk, WalkOf(wholes.shape, scales.floats().size(), axis));
  std::vector<int64_t> zeros(scales.floats().size());
  for (size_t i = 0; zero_points != nullptr && i < zeros.size(); ++i) zeros[i] = WholeAt(*zero_points, i);
  if (wholes.dtype == DType::kInt32 && std::ranges::any_of(zeros, [](int64_t zero) { return zero != 0; })) {
    return InvalidArgument("its zero point of INT32 is not 0");
  }
  const int64_t elements = wholes.elements();
  Tensor reals{DType::kFloat32, wholes.shape, std::vector<std::byte>(static_cast<size_t>(elements) * sizeof(float))};
  const std::span<float> to = reals.floats();
  for (int64_t i = 0; i < elements; ++i) {
    const size_t channel = walk.ChannelOf(i), at = static_cast<size_t>(i);
    to[at] = scales.floats()[channel] * static_cast<float>(WholeAt(wholes, at) - zeros[channel]);
  }
  return reals;
}

StatusOr<Tensor> QuantisedTensor(const Tensor& reals, const Quantisation& quantisation, int64_t axis) {
  SWIZZLE_ASSIGN_OR_RETURN(const ChannelWalk walk, WalkOf(reals.shape, quantisation.scales.size(), axis));
  const int64_t elements = reals.elements();
  Tensor wholes{quantisation.dtype, reals.shape, std::vector<std::byte>(static_cast<size_t>(elements))};
  const auto least = static_cast<float>(LeastOf(quantisation.dtype));
  for (int64_t i = 0; i < elements; ++i) {
    const Quantised as = quantisation.Of(static_cast<int64_t>(walk.ChannelOf(i)));
    const auto at = static_cast<size_t>(i);
    const float whole = std::nearbyint(reals.floats()[at] / as.scale) + static_cast<float>(as.zero_point);
    const float held = whole > least ? std::min(whole, least + kSteps) : least;  // not a number: the least
    wholes.bytes[at] = static_cast<std::byte>(static_cast<int32_t>(held));
  }
  return wholes;
}

RealRange RangeOf(const Quantised& quantised) {
  const int32_t least = LeastOf(quantised.dtype) - quantised.zero_point;
  return {quantised.scale * static_cast<float>(least), quantised.scale * static_cast<float>(least + kSteps)};
}

bool IsWhole(const Quantised& quantised, float real) {
  constexpr float kExact = 1e-4f;  // of a step
  const RealRange range = RangeOf(quantised);
  const float steps = real / quantised.scale;
  return real >= range.low && real <= range.high && std::abs(steps - std::nearbyint(steps)) < kExact;
}

bool ClampKeepsWholes(const Quantised& quantised, float low, float high) {
  const RealRange range = RangeOf(quantised);
  const auto keeps = [&](float bound) {
    return bound <= range.low || bound >= range.high || IsWhole(quantised, bound);
  };
  return keeps(low) && keeps(high);
}

}  // namespace swizzle
