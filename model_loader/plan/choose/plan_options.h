// What whoever wants a plan says about it.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/precision.h"
#include "kernels/measure/machine_watch.h"
#include "kernels/measure/measure_gate.h"

namespace swizzle {

class TuningCache;

// How far a plan is: of so many layers, what was done to how many.
struct PlanProgress {
  enum class Stage : uint8_t { kMeasuring, kPreparing };
  Stage stage = Stage::kMeasuring;
  int64_t done = 0, all = 0;
};

struct PlanOptions {
  int64_t max_batch = 64;                 // rows; ignored where the network's batch is fixed
  int64_t max_tokens = int64_t{1} << 14;  // of all sequences; ignored where batch and length are fixed
  // Rows that kernels are measured at, rising; empty: the usual ones. A device's, and where there are sequences, are
  // always the usual ones.
  std::vector<int64_t> measured_batches = {};
  int threads = 0;                            // of the streams it will run on; 0: all available
  int preparing_threads = 0;                  // that prepare the host's weights; 0: as many
  Precision precision = Precision::kFloat32;  // the CPU has FP32 and BF16 (IsOfCpu)
  bool dense_only = false;                    // leaves sparse kernels out, for comparisons
  // For all that is measured, weights that are prepared for it included; it is passed by one layer's least runs at
  // most. TuningShare says for what. Where there was no time, or measurements were disturbed, kernels are chosen by
  // rule of thumb (estimate.h). Zero measures nothing.
  absl::Duration tuning_budget = absl::Seconds(15);
  MeasureGate* gate = &MeasureGate::Open();  // outlives MakePlan
  // Of threads made since, that measure; null: no measurement counts as disturbed by the machine.
  std::unique_ptr<MachineWatch> (*make_watch)(const std::set<int>& before) = &NewMachineWatch;
  // Asked before anything is measured, and told what was; outlives MakePlan. Null: none.
  TuningCache* tuning_cache = nullptr;
  // What packed weights may take, as a multiple of what they take with one form for each layer. More than 1 lets small
  // and large batches run on kernels that read different forms, where that was measured to be faster; by the usual one
  // only where it is worth the memory (kLeastWorth), by another wherever it is faster. 0: the usual. At most
  // kMostWeightBudget.
  double weight_budget = 0.0;
  int64_t micro_batch = 0;    // see PlanReport; 0: measured, on the CPU, with a share of the budget
  bool keep_weights = false;  // Plan::network() keeps its weights, for whoever describes them
  std::function<void(const PlanProgress&)> progress = nullptr;  // told after each layer; may be empty
};

inline constexpr double kMostWeightBudget = 100.0;
// On a GPU small batches are often fastest dense and large ones sparse, and sparse forms take little beside dense ones:
// at 90 % zeros a tenth in vectors of rows, a fifth one by one. kernels/cuda/PERFORMANCE.md has what it gains.
constexpr double UsualWeightBudget(bool host_memory) { return host_memory ? 1.0 : 1.25; }
// See FindWantedForms. Sparse forms beside dense ones gain several times as much, dense beside sparse ones rarely this.
inline constexpr double kLeastWorth = 0.1;

// What of the tuning budget is for each thing. All but kernels are measured on the CPU alone.
struct TuningShare {
  static constexpr double kKernels = 8.0 / 15, kConversions = 1.0 / 15, kBlockings = 2.0 / 15, kSerialSteps = 1.0 / 15,
                          kMicroBatch = 2.0 / 15;
  static constexpr double kRace = 1.0 / 15;  // of the plan with the one that runs (plan_tuner.h)
  // Whole plans are timed in turns, a few at least. Beside busy neighbours, where threads wait for each other through
  // time slices, these few take fifty times as long as on a quiet machine: who has not got so far when so many times
  // its share is over gives up.
  static constexpr double kPatience = 2.0;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_OPTIONS_H_
