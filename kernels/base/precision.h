// What a plan computes in, which a model's configuration names.
#ifndef SWIZZLE_KERNELS_BASE_PRECISION_H_
#define SWIZZLE_KERNELS_BASE_PRECISION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/base/storage.h"

namespace swizzle {

// Sums are in FP32 always. kFloat16x3: all is stored in FP32, and products may take each factor as two halves, of 22
// bits together, in three products of halves. kTf32: that, and dense products may round their factors to the 10 bits of
// mantissa that tensor cores take. kInt8: all is stored in FP16, and attention may round its operands to bytes, by
// scales of their own. Whole numbers that a model has scales for are none of a precision: every plan may use them.
enum class Precision : uint8_t { kFloat32, kTf32, kFloat16, kBFloat16, kInt8, kFloat16x3 };
inline constexpr std::array kPrecisions = {Precision::kFloat32, Precision::kFloat16x3, Precision::kTf32,
                                           Precision::kFloat16, Precision::kBFloat16,  Precision::kInt8};

// The type of activations and weights.
constexpr DType TypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat16:
    case Precision::kInt8:
      return DType::kFloat16;
    case Precision::kBFloat16:
      return DType::kBFloat16;
    case Precision::kFloat32:
    case Precision::kTf32:
    case Precision::kFloat16x3:
      break;
  }
  return DType::kFloat32;
}

// Whether an activation so stored is in FP32 where the precision has a narrower type for its layout.
constexpr bool IsWider(Precision precision, Storage storage) {
  return storage.dtype == DType::kFloat32 && storage != StorageIn(storage.layout, TypeOf(precision));
}

// Whether a plan in this precision may store an activation so: in its own type, or in FP32 where that is faster.
constexpr bool MayStore(Precision precision, Storage storage) {
  storage.pooled = false;
  return storage == StorageIn(storage.layout, TypeOf(precision)) || IsWider(precision, storage) ||
         storage == kIdStorage;
}

// Whether the CPU's kernels have it; a GPU's have all.
constexpr bool IsOfCpu(Precision precision) {
  return precision == Precision::kFloat32 || precision == Precision::kBFloat16;
}

// "FP32", "FP16X3", "TF32", "FP16", "BF16", "INT8".
std::string_view PrecisionName(Precision precision);
std::optional<Precision> PrecisionFromName(std::string_view name);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_PRECISION_H_
