// How whole numbers stand for real ones: real = scale * (stored - zero_point), one scale for all. Plain value. Light,
// since the GPU's kernels include it; quantisation.h has scales per channel.
#ifndef SWIZZLE_KERNELS_BASE_QUANTISED_H_
#define SWIZZLE_KERNELS_BASE_QUANTISED_H_

#include <cstdint>

#include "kernels/base/dtype.h"

namespace swizzle {

struct Quantised {
  DType dtype = DType::kFloat32;  // kInt8 or kUint8; kFloat32: they are the real ones
  float scale = 1.0f;             // finite and above 0
  int32_t zero_point = 0;         // of the type
  bool operator==(const Quantised&) const = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_QUANTISED_H_
