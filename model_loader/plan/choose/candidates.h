// The kernels that could run each layer of a network, and how long each takes on this machine.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATES_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATES_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "kernels/base/precision.h"
#include "kernels/measure/measure_kernels.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/layout_choice.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {

// What every layer of a plan runs with.
struct RunSettings {
  int threads = 1;
  Precision precision = Precision::kFloat32;
};

// One kernel for one layer. kernel is null for kReshape, which moves no data.
struct Candidate {
  const Kernel* kernel = nullptr;
  Storage input = {};
  Storage output = {};
  std::vector<double> microseconds = {};  // per batch size
  bool measured = false;                  // else estimated, wholly or (see Measurer) beyond the first batch size
  int blocking = 0;                       // of the kernel's
};

bool TakesWeight(const Candidate& candidate);
// Whether two kernels for one layer read the same packed form of its weight, which is then held once for both.
bool ReadSameForm(const Candidate& a, const Candidate& b);

// Times kernels within one budget for all of them: what is left is shared out evenly over the measurements to come, and
// each kernel that is measured runs at least twice. Kernels for one layer take turns (MeasureKernels). What the tuning
// cache knows is not measured again. With no budget at all, the times of a layer that the cache does not know whole are
// estimates (estimate.h).
//
// A kernel so slow at the first batch size that it could not win at a later one, even if it took no longer there while
// the fastest slowed down in proportion, is not measured again: its time is extrapolated.
//
// Results for equal conversions are remembered. Not thread-safe.
class Measurer {
 public:
  // `batches`, rising, are what every kernel is timed at. Of the options, those about kernels and measuring.
  Measurer(Backend& backend, Stream& stream, std::vector<int64_t> batches, const PlanOptions& options)
      : backend_(backend),
        stream_(stream),
        settings_{stream.threads(), options.precision},
        throughput_(backend.throughput(options.precision)),
        dense_only_(options.dense_only),
        batches_(std::move(batches)),
        cache_(options.tuning_cache),
        measures_(options.tuning_budget > absl::ZeroDuration()),
        blocking_budget_(options.tuning_budget / 5),
        budget_left_(options.tuning_budget) {}

  const std::vector<int64_t>& batches() const { return batches_; }
  int timed_now() const { return timed_now_; }
  int timed_before() const { return timed_before_; }

  // Every candidate of every layer with its times. UNIMPLEMENTED, naming the layer, if one has none.
  StatusOr<std::vector<std::vector<Candidate>>> MeasureLayers(const Network& network);

  // Sets `blocking` of candidates that MeasureLayers gave, one a layer, to which of their kernel's blockings is
  // fastest: the first, unless another is clearly faster, and slower at no batch size. Those of a layer take turns; all
  // runs together take a fifth of the budget more. What would have to be measured without a budget stays at the first.
  Status ChooseBlockings(const Network& network, std::span<Candidate> chosen);

  // Microseconds per batch size of converting an activation of this extent; empty if no kernel does.
  StatusOr<std::vector<double>> MeasureConversion(const NetworkValue& value, Storage from, Storage to);

 private:
  class LayerWeight;

  StatusOr<std::vector<Candidate>> LayerCandidates(const Network& network, const Layer& layer) const;
  void EstimateLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) const;
  // Whether all times are there; kernels that turned out not to run here are then no candidates any more. Not, without
  // a budget, if the cache lacks a time: `candidates` is then as it was.
  StatusOr<bool> TimeLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates);
  // Microseconds of each, from the cache, else measured side by side; none if without a budget the cache lacks one.
  StatusOr<std::optional<std::vector<double>>> Time(std::span<const Kernel* const> kernels, const Problem& problem,
                                                    LayerWeight& weight);
  StatusOr<int> ChooseBlocking(const Network& network, const Layer& layer, const Kernel& kernel);
  // What each blocking takes of the time that the first one does, from the cache, else measured; none if without a
  // budget the cache lacks one. 1 where a blocking is the first one again.
  StatusOr<std::vector<double>> BlockingRatios(const Kernel& kernel, const Problem& problem, LayerWeight& weight);
  // Microseconds of each, measured side by side.
  StatusOr<std::vector<double>> RaceBlockings(const Kernel& kernel, const Problem& problem, LayerWeight& weight);
  StatusOr<std::vector<absl::Duration>> Measure(std::span<const Contender> contenders, const Problem& problem);
  // Whether a candidate with this time at the first batch size can be left out at batches_[b].
  bool CannotWin(double microseconds, double least, size_t b) const;

  Backend& backend_;
  Stream& stream_;
  const RunSettings settings_;
  const Throughput throughput_;
  const bool dense_only_;
  const std::vector<int64_t> batches_;
  TuningCache* const cache_;
  const bool measures_;
  const absl::Duration blocking_budget_;
  absl::Duration budget_left_;
  int64_t measurements_left_ = 1;
  int timed_now_ = 0;
  int timed_before_ = 0;
  std::map<std::vector<int64_t>, std::vector<double>> conversions_;  // by extent and storage
};

// Storing a value in another way.
Problem ConversionProblem(const NetworkValue& value, BatchSize size, RunSettings settings);

// The row that does, or null.
const Kernel* FindConversion(const Backend& backend, const NetworkValue& value, Storage from, Storage to,
                             RunSettings settings);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATES_H_
