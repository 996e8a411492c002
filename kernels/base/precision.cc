#include "kernels/base/precision.h"

namespace swizzle {

std::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFloat16x3:
      return "FP16X3";
    case Precision::kTf32:
      return "TF32";
    case Precision::kInt8:
      return DTypeName(DType::kInt8);
    case Precision::kFloat32:
    case Precision::kFloat16:
    case Precision::kBFloat16:
      break;
  }
  return DTypeName(TypeOf(precision));
}

std::optional<Precision> PrecisionFromName(std::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (PrecisionName(precision) == name) return precision;
  }
  return std::nullopt;
}

}  // namespace swizzle
