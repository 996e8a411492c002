// The bits of the number nearest to one in single precision, of whichever half type. A pure function.
#ifndef SWIZZLE_KERNELS_BASE_HALF_BITS_H_
#define SWIZZLE_KERNELS_BASE_HALF_BITS_H_

#include "kernels/base/dtype.h"
#include "kernels/base/half.h"

namespace swizzle {

// `dtype` is FP16 or BF16.
inline uint16_t HalfBits(float value, DType dtype) {
  return dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_HALF_BITS_H_
