// What whoever wants a plan says about it.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "kernels/base/precision.h"

namespace swizzle {

class TuningCache;

struct PlanOptions {
  int64_t max_batch = 64;                     // rows; ignored where the network's batch is fixed
  int64_t max_tokens = int64_t{1} << 14;      // of all sequences; ignored where batch and length are fixed
  int threads = 0;                            // of the streams it will run on; 0: all available
  Precision precision = Precision::kFloat32;  // the CPU has FP32 and BF16 (IsOfCpu)
  bool dense_only = false;                    // leaves sparse kernels out, for comparisons
  // For measuring kernels, all together; on the CPU half as much more is for blockings, serial steps and micro-batches.
  // Zero measures nothing: kernels are then chosen by rule of thumb (estimate.h).
  absl::Duration tuning_budget = absl::Seconds(10);
  // Asked before anything is measured, and told what was; outlives MakePlan. Null: none.
  TuningCache* tuning_cache = nullptr;
  // What packed weights may take, as a multiple of what they take with one form for each layer. More than 1 lets small
  // and large batches run on kernels that read different forms, where that was measured to be faster.
  double weight_budget = 1.0;
  int64_t micro_batch = 0;  // see PlanReport; 0: measured, on the CPU, with a share of the budget
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_
