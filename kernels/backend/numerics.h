// How a kernel row computes, as far as the types of what it reads and writes don't tell: one value, which rows name and
// plans ask. Plain values.
#ifndef SWIZZLE_KERNELS_BACKEND_NUMERICS_H_
#define SWIZZLE_KERNELS_BACKEND_NUMERICS_H_

#include <cstdint>

#include "kernels/base/precision.h"

namespace swizzle {

enum class Numerics : uint8_t {
  kOfTypes,          // with what is stored, summed in FP32
  kTf32Factors,      // rounds FP32 factors to TF32; its types are FP32
  kBfloat16Factors,  // rounds FP32 factors to BF16, where whole numbers made them; its types are FP32
  kSplitFactors,     // takes FP32 factors as two halves, and sums them as tensor cores do; its types are FP32
  kOperandsAsBytes,  // rounds operands that the model has no scales for to bytes
};

// Whether a plan in this precision may have rows that compute so. What asks for more of the layer, as kBfloat16Factors
// does, whoever lists its rows looks at.
constexpr bool Allows(Precision precision, Numerics numerics) {
  switch (numerics) {
    case Numerics::kOfTypes:
    case Numerics::kBfloat16Factors:
      return true;
    case Numerics::kTf32Factors:
      return precision == Precision::kTf32;
    case Numerics::kSplitFactors:
      return precision == Precision::kTf32 || precision == Precision::kFloat16x3;
    case Numerics::kOperandsAsBytes:
      return precision == Precision::kInt8;
  }
  return false;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_NUMERICS_H_
