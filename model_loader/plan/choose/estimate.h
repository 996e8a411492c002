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

// Whether the row reads or writes a type that is wider than the plan's.
inline bool IsWider(Precision precision, const Kernel& kernel) {
  return IsWider(precision, kernel.key.input) || IsWider(precision, kernel.key.output);
}

// What estimates go by of a layer's weight.
struct WeightShape {
  explicit WeightShape(const Weight& weight)
      : rows(weight.rows()), columns(weight.cols()), nonzeros(weight.nonzeros()) {}
  WeightShape() = default;

  int64_t rows = 0, columns = 0, nonzeros = 0;
};

// Microseconds: multiply-adds at the backend's rate for the kernel's format, or else floats moved at its memory's speed
// (on the host both on one core). Windows that a device's row unfolds are moved twice more. Only ratios mean anything.
// `weight` is the layer's, or null. Pure.
double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const WeightShape* weight,
                            const Throughput& throughput);
// The same in a plan: rows that round less than it may have to be faster by more than the doubt in estimates.
double EstimateInPlan(const Kernel& kernel, const Problem& problem, const WeightShape* weight,
                      const PlanThroughput& throughput);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_ESTIMATE_H_
