// What a plan runs and why: for logs, metrics and `swizzle-pack inspect`. Value types.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_REPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/layout.h"

namespace swizzle {

// Why a layer runs on the kernel it runs on.
struct LayerReport {
  // Of a kernel that could run it.
  struct KernelTimes {
    std::string kernel;
    // Microseconds of a run at PlanReport::measured_batches, same order. Where not measured, an estimate; a candidate
    // hopeless at the first batch size is extrapolated to the others.
    std::vector<double> microseconds;
    bool measured = false;           // now, or before (see choose/tuning_cache.h)
    Format weights = Format::kNone;  // that the kernel takes
    bool suspect = false;            // was measured, and disturbed, so that all times of the layer are estimates
    DType type = DType::kFloat32;    // of its weights, or, where it takes none, of its input
    bool skips_input_zeros = false;  // see Kernel
    double copied = 1.0;             // the share of its copies that the plan does not avoid; times are of that
  };
  std::string name;
  std::string op;
  Extent input, output;                                    // at batch 1
  int64_t weight_rows = 0, weight_cols = 0, nonzeros = 0;  // 0 for layers without weights that pruning is for
  Format format = Format::kNone;                           // of the stored weight
  int64_t dense_bytes = 0, stored_bytes = 0, device_bytes = 0;
  // Chosen, for each of PlanReport::buckets; all are empty where no data is moved.
  std::vector<std::string> kernels;
  std::string blocking;                 // of its weight (Kernel::blockings), where it isn't the usual one
  bool serial = false;                  // runs on one thread where a batch is no larger than PlanReport::small_batch
  std::vector<KernelTimes> candidates;  // the chosen ones among them

  bool moves_data() const { return !kernels.empty() && !kernels.front().empty(); }
  // Whether a batch of some size runs on it.
  bool RunsOn(std::string_view kernel) const { return std::ranges::find(kernels, kernel) != kernels.end(); }
  bool SkipsInputZeros() const {
    return std::ranges::any_of(candidates,
                               [&](const KernelTimes& of) { return of.skips_input_zeros && RunsOn(of.kernel); });
  }
  // At PlanReport::measured_batches[measured].
  const std::string& KernelAt(size_t measured) const { return kernels[kernels.size() == 1 ? 0 : measured]; }
  double sparsity() const {
    const int64_t total = weight_rows * weight_cols;
    return total == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros) / static_cast<double>(total);
  }
};

struct PlanReport {
  std::string backend;  // "cpu", "cuda:0"
  std::string device;
  int threads = 0;
  std::vector<int64_t> measured_batches;  // rows, or tokens where there are sequences
  // The largest batch, in the same unit, of each range of sizes that has kernels of its own, one for each measured
  // size; a single one where all run on the same kernels.
  std::vector<int64_t> buckets;
  std::vector<LayerReport> layers;
  int conversions = 0;  // layout conversions between layers, of the largest batches
  // Rows, or tokens where there are sequences, that whoever has a larger batch should give a part (Runner::RunPart) or
  // a run at most (see choose/micro_batch.h); one sequence may have more. On a GPU, and where nothing was measured, all
  // that a plan takes.
  int64_t micro_batch = 0;
  int64_t small_batch = 0;  // rows, or tokens, of a batch that some layers compute on one thread; 0: none do
  int timed_now = 0;        // measurements made for this plan
  int timed_before = 0;     // taken from the tuning cache
  int suspect = 0;          // measurements that were disturbed, and have to be made again
  // Layers whose kernels were chosen by estimates, and what else was left as it usually is, for want of measurements.
  int untimed = 0;
  int64_t dense_bytes = 0, stored_bytes = 0, device_bytes = 0;
  int64_t shared_bytes = 0;   // of device_bytes, those of weights that a plan before held already
  int64_t program_bytes = 0;  // what the plan takes of the host's memory beside weights, about
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_REPORT_H_
