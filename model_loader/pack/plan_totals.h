// Sums over the layers of a model's plans. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_PLAN_TOTALS_H_
#define SWIZZLE_MODEL_LOADER_PACK_PLAN_TOTALS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model_loader/pack/model_report.h"

namespace swizzle::pack {

// Parts whose kernels were measured at the same batches.
struct PartGroup {
  std::vector<size_t> parts;  // in order
  // Their layers one after another, each as often as it runs, and what else is a sum over plans.
  PlanReport together;
};

// All parts, in groups by the first of each.
std::vector<PartGroup> GroupsOf(const ModelReport& report);

// Of all parts, each counted once: bytes of weights, conversions, and how many measurements there were.
PlanReport SumOf(const ModelReport& report);
int64_t LargestArena(const ModelReport& report);

// Microseconds of the kernel that was chosen for a layer, at one of the measured batches; 0 where it is not known.
double TimeOfChosen(const LayerReport& layer, size_t batch);
// Microseconds of the fastest kernel that takes no sparse weights; nothing where there is none.
std::optional<double> TimeOfDense(const LayerReport& layer, size_t batch);

// Microseconds of all chosen kernels together, per measured batch; layers that were not measured add nothing.
std::vector<double> ChosenTotals(const PlanReport& plan);
// Had every layer run on its fastest kernel that takes no sparse weights; its chosen one where there is none.
std::vector<double> DenseTotals(const PlanReport& plan);
// The share of zeros in all weights.
double TotalSparsity(const PlanReport& plan);

// The layer's kernels: the chosen ones, then the others by their time at the first measured batch; unmeasured ones
// last.
std::vector<LayerReport::KernelTimes> Ranked(const LayerReport& layer);
// The chosen ones, those for small batches first, where they differ.
std::string KernelsText(const LayerReport& layer);

inline bool HasWeight(const LayerReport& layer) { return layer.weight_rows > 0; }

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_PLAN_TOTALS_H_
