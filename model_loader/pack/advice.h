// What zeros would bring: a model's latency at several sparsities by what kernels take there, layer by layer, and which
// layers to leave as they are. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_ADVICE_H_
#define SWIZZLE_MODEL_LOADER_PACK_ADVICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/plan/run/plan_report.h"

namespace swizzle::pack {

// One part of a planned model: all of it, or a region.
struct PlannedPart {
  PlanReport plan;
  int64_t places = 1;  // that it runs at
};

// The model with its layers pruned to one sparsity, as it is planned.
struct SparsitySample {
  double sparsity = 0.0;
  std::vector<PlannedPart> parts;
  std::map<std::string, double> removed_squares;  // by layer's name; see PruneRecord
};

enum class Verdict : uint8_t {
  kPrune,
  kNoFaster,      // it gains less than kLeastGain of its time
  kHardlyCounts,  // what it gains is less than kLeastPart of what a layer gains on average
};
inline constexpr double kLeastGain = 0.1;
inline constexpr double kLeastPart = 0.1;  // all layers that are left for it have a tenth of the gain at most
std::string_view VerdictName(Verdict verdict);

// Microseconds by measured batch. Of a part at several places, those of one.
using BatchTimes = std::vector<double>;

struct LayerAdvice {
  std::string name;
  int64_t places = 1;
  int64_t rows = 0, cols = 0;  // of its weight
  BatchTimes dense;            // of the fastest kernel that takes no sparse weights: the median over samples
  // By sample, what follows. A kernel that was chosen may be dense.
  std::vector<BatchTimes> times;
  std::vector<std::string> kernels;     // at the first measured batch
  std::vector<double> removed_squares;  // empty where the layer is known by another name when it is pruned
  double share = 0.0;                   // of the dense model's time, over batches
  // The least sparsity at which, as at all between it and `wanted`, it gains kLeastGain; 1: none.
  double pays_from = 1.0;
  Verdict verdict = Verdict::kPrune;  // at Advice::wanted
};

struct Advice {
  std::string model, container, producer, features;
  std::string method;       // as `prune --method` has it
  int64_t vector_rows = 0;  // of vectors and blocks; 0: neither
  std::string device;
  int threads = 0;
  int64_t max_batch = 0;
  bool counts_tokens = false;                   // batches are tokens of sequences, else rows
  bool in_regions = false;                      // then what lies between these is in no time
  double wanted = 0.0;                          // sparsity of the layers that are to be pruned; one of `sparsities`
  int suspect = 0, untimed = 0, timed_now = 0;  // see PlanReport
  bool mixes_batches = false;    // parts run at other batches than these: totals are of each one's first, second ...
  int64_t left_out = 0;          // layers of parts that run at more or fewer batches, which are in no total
  std::vector<int64_t> batches;  // of the first part
  std::vector<double> sparsities;
  std::vector<double> apart;        // sparsities that are left out, since layers are planned otherwise there
  std::vector<LayerAdvice> layers;  // that were pruned
  BatchTimes rest;                  // of all other layers together
  BatchTimes dense, advised;        // of all layers; with those to prune at `wanted`, the others dense
  std::vector<BatchTimes> totals;   // by sparsity, every layer pruned
};

// Fills in what follows from samples, of rising sparsity: from those whose plans are of the same layers as the one that
// is wanted. Where about half of a weight is zero, its products may be joined with others or not, by their formats.
// UNIMPLEMENTED if none of these has a layer that was pruned. REQUIRES: `wanted` is one of the samples' sparsities.
Status Advise(std::vector<SparsitySample> samples, double wanted, Advice& advice);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_ADVICE_H_
