#include "kernels/base/quantisation.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace swizzle {

Status Quantisation::Validate(int64_t channels) const {
  if (dtype != DType::kInt8 && dtype != DType::kUint8) {
    return InvalidArgument("it is quantised to ", DTypeName(dtype), "; only INT8 and UINT8 are known");
  }
  if (!per_tensor() && static_cast<int64_t>(scales.size()) != channels) {
    return InvalidArgument("it has ", scales.size(), " scales; ", channels, " channels take one each, or one for all");
  }
  for (const float scale : scales) {
    if (!(std::isfinite(scale) && scale > 0)) return InvalidArgument("its scale ", scale, " is not a number above 0");
  }
  if (!zero_points.empty() && zero_points.size() != scales.size()) {
    return InvalidArgument("it has ", zero_points.size(), " zero points for ", scales.size(), " scales");
  }
  const int32_t least = dtype == DType::kInt8 ? -128 : 0;
  for (const int32_t zero_point : zero_points) {
    if (zero_point < least || zero_point > least + 255) {
      return InvalidArgument("its zero point ", zero_point, " is not of ", DTypeName(dtype));
    }
  }
  return absl::OkStatus();
}

std::optional<int32_t> Quantisation::common_zero_point() const {
  if (zero_points.empty()) return 0;
  if (std::ranges::adjacent_find(zero_points, std::ranges::not_equal_to()) != zero_points.end()) return std::nullopt;
  return zero_points.front();
}

Quantised Quantisation::Of(int64_t channel) const {
  const size_t at = per_tensor() ? 0 : static_cast<size_t>(channel);
  return {dtype, scales[at], zero_points.empty() ? 0 : zero_points[at]};
}

}  // namespace swizzle
