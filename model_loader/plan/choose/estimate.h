// How long a kernel takes by rule of thumb, for plans that are made without measuring (tuning budget 0).
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_

#include "kernels/backend/backend.h"

namespace swizzle {

// Microseconds: multiply-adds at the backend's rate for the kernel's format, or else floats moved at its memory's speed
// (on the host both on one core). Windows that a device's row unfolds are moved twice more. Only ratios mean anything.
// `weight` is the layer's, or null. Pure.
double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const Weight* weight,
                            const Throughput& throughput);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
