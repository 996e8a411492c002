// Tensors that requests give in another shape than the model has them in, of the same elements.
//
// Dimensions that are left open, -1, stand for each other in their order: requests of [-1, 8] are [2, -1, 4] to the
// model, and one of [5, 8] is [2, 5, 4]. Free functions, thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_RESHAPED_DIMS_H_
#define SWIZZLE_SERVER_MODEL_RESHAPED_DIMS_H_

#include <cstddef>

#include "kernels/base/tensor.h"

namespace swizzle {

// Whether they have as many -1s, and all other dimensions of each together the same number of elements.
bool DimsReshape(const Shape& from, const Shape& to);

// What `shape`, which is as `from` says behind its first `leading` dimensions, is as `to` says.
// REQUIRES: DimsReshape(from, to), and shape has leading + from.size() dimensions.
Shape Reshaped(const Shape& shape, size_t leading, const Shape& from, const Shape& to);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_RESHAPED_DIMS_H_
