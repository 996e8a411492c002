// How long a kernel takes by rule of thumb, for plans that are made without measuring (tuning budget 0).
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle {

// Microseconds on one core: multiply-adds at a rate typical of the kernel's format, or else bytes moved at memory
// speed. Only ratios mean anything. `weight` is the layer's, or null. Pure.
double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const Weight* weight);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
