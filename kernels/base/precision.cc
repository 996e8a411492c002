#include "kernels/base/precision.h"

namespace swizzle {

std::string_view PrecisionName(Precision precision) {
  if (precision == Precision::kInt8) return DTypeName(DType::kInt8);
  return precision == Precision::kTf32 ? "TF32" : DTypeName(TypeOf(precision));
}

std::optional<Precision> PrecisionFromName(std::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (PrecisionName(precision) == name) return precision;
  }
  return std::nullopt;
}

}  // namespace swizzle
