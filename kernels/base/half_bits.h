// The bits of the number nearest to one in single precision, of whichever half type. Pure functions.
#ifndef SWIZZLE_KERNELS_BASE_HALF_BITS_H_
#define SWIZZLE_KERNELS_BASE_HALF_BITS_H_

#include <span>

#include "kernels/base/dtype.h"
#include "kernels/base/half.h"

namespace swizzle {

// `dtype` is FP16 or BF16.
inline uint16_t HalfBits(float value, DType dtype) {
  return dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
}

// The same of many, with the processor's own conversion where it has one; a NaN may keep more of its bits by it.
// `halves` are as many as `values`, and may begin at any byte.
void StoreHalves(std::span<const float> values, DType dtype, std::byte* halves);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_HALF_BITS_H_
