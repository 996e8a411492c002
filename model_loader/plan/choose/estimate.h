// How long a kernel takes by rule of thumb, for plans that are made without measuring (tuning budget 0).
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_

#include "kernels/backend/backend.h"
#include "kernels/base/precision.h"

namespace swizzle {

// What rows of one plan reach on its backend. Only those that the plan's precision lets round run on tensor cores where
// the plan stores all in FP32.
struct PlanThroughput {
  Precision precision;
  Throughput plan;    // in the precision
  Throughput single;  // in FP32
  Throughput split;   // of FP32 by three products of halves

  static PlanThroughput Of(const Backend& backend, Precision precision) {
    return {precision, backend.throughput(precision), backend.throughput(Precision::kFloat32),
            backend.throughput(Precision::kFloat16x3)};
  }
  const Throughput& For(const Kernel& kernel) const;
};

// Microseconds: multiply-adds at the backend's rate for the kernel's format, or else floats moved at its memory's speed
// (on the host both on one core). Windows that a device's row unfolds are moved twice more. Only ratios mean anything.
// `weight` is the layer's, or null. Pure.
double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const Weight* weight,
                            const Throughput& throughput);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
