// Layers that move bytes and leave what they stand for. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_WHOLE_NUMBERS_KEPT_BYTES_H_
#define SWIZZLE_KERNELS_WHOLE_NUMBERS_KEPT_BYTES_H_

#include "kernels/operator/problem.h"

namespace swizzle {

// Whether all inputs and the output are bytes of one scale and zero point.
bool KeepsBytes(const Problem& problem);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_WHOLE_NUMBERS_KEPT_BYTES_H_
