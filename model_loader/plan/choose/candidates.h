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
#include "model_loader/plan/choose/candidate.h"
#include "model_loader/plan/choose/estimate.h"
#include "model_loader/plan/choose/layout_choice.h"
#include "model_loader/plan/choose/measured_sizes.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {

struct LayerLikeness;

// What kernels are timed on.
struct MeasuredOn {
  Stream* stream = nullptr;       // null where nothing is measured
  MachineWatch* watch = nullptr;  // of its threads; may be null
  int threads = 1;                // that plans run on, which the stream has, too
};

// Times kernels within one budget for all of them: what is left is shared out evenly over the measurements to come,
// and the layers that take longest come first. Kernels for one layer take turns (MeasureKernels). What the tuning cache
// knows is not measured again. Where the budget is spent, all times of the layer are estimates (estimate.h), since the
// two can't be compared; likewise, with no budget at all, of a layer that the cache does not know whole. Where a
// measurement was disturbed so that it is suspect, it stands for the most that the kernel takes, and the layer is
// measured again some time; where none of the layer's can be trusted, they are estimates, too. No estimate says what
// zeros of the input save: kernels that skip them are candidates by times alone.
//
// A kernel so slow at the first batch size that it could not win at a later one, even if it took no longer there while
// the fastest slowed down in proportion, is not measured again: its time is extrapolated. So are all of a layer whose
// row is too large for caches (AddsUp): eight rows of a large image would else take the budget of ten other layers.
// Of many sizes some are measured first (measured_sizes.h). At those between, a kernel that is far behind at both
// neighbours isn't measured, nor are conversions, nor anything once the budget is spent: times lie between theirs.
//
// Results for equal conversions are remembered. Not thread-safe.
class Measurer {
 public:
  // `sizes`, rising, are what every kernel is timed at. Of the options, those about kernels and measuring. What `on`
  // names outlives this. REQUIRES: a stream where the options have a budget.
  Measurer(Backend& backend, MeasuredOn on, std::vector<BatchSize> sizes, const PlanOptions& options)
      : backend_(backend),
        on_(on),
        settings_{on.threads, options.precision},
        throughput_(PlanThroughput::Of(backend, options.precision)),
        dense_only_(options.dense_only),
        sizes_(std::move(sizes)),
        cache_(options.tuning_cache),
        options_(options),
        measures_(options.tuning_budget > absl::ZeroDuration()) {}

  const std::vector<BatchSize>& sizes() const { return sizes_; }
  int timed_now() const { return timed_now_; }
  int timed_before() const { return timed_before_; }
  int suspect() const { return suspect_; }  // times, of what was measured now or before
  int untimed_layers() const { return untimed_layers_; }

  // Every candidate of every layer with its times. UNIMPLEMENTED, naming the layer, if one has none.
  StatusOr<std::vector<std::vector<Candidate>>> MeasureLayers(const Network& network);

  // Sets `blocking` of candidates that MeasureLayers gave, one a layer, to which of their kernel's blockings is
  // fastest: the first, unless another is clearly faster, and slower at no batch size. Those of a layer take turns.
  // What there is no budget for, and what is suspect, stays at the first.
  Status ChooseBlockings(const Network& network, std::span<Candidate> chosen);

  // Microseconds per batch size of converting an activation of this extent; empty if no kernel does.
  StatusOr<std::vector<double>> MeasureConversion(const NetworkValue& value, Storage from, Storage to);

 private:
  class LayerWeight;

  void EstimateLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) const;
  // The layers in the order in which they are timed.
  std::vector<size_t> LongestFirst(const Network& network, const std::vector<std::vector<Candidate>>& layers,
                                   const std::vector<LayerLikeness>& likeness) const;
  // Whether the layer was timed.
  StatusOr<bool> JudgeLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates);
  // What costs nothing: see Candidate::kernel.
  void AddRenames(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) const;
  // Of times that the cache has.
  void FindSuspects(const Network& network, const Layer& layer, std::vector<Candidate>& candidates);
  // Whether all times are there, and to be trusted; kernels that turned out not to run here are then no candidates any
  // more. If not, `candidates` is as it was, but for which are suspect, and for times, where some can be trusted at
  // each batch size.
  StatusOr<bool> TimeLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates);
  // What a kernel that took so long at other sizes takes at sizes_[b], where it need not be measured there.
  std::optional<double> ByOtherSizes(const std::vector<double>& times, const std::vector<double>& least,
                                     const Problem& problem, bool adds_up, size_t b) const;
  double Between(const std::vector<double>& times, Neighbours known, size_t b) const;
  // Of a kernel for a problem.
  struct Timing {
    double microseconds = 0.0;
    bool suspect = false;
  };
  // Of each, from the cache, else measured side by side; none if the cache lacks one, and there is no budget left.
  StatusOr<std::optional<std::vector<Timing>>> Time(std::span<const Kernel* const> kernels, const Problem& problem,
                                                    LayerWeight& weight);
  StatusOr<int> ChooseBlocking(const Network& network, const Layer& layer, const Kernel& kernel);
  // What each blocking takes of the time that the first one does, from the cache, else measured; none if the cache
  // lacks one, and there is no budget left, or one is suspect. 1 where a blocking is the first one again.
  StatusOr<std::vector<double>> BlockingRatios(const Kernel& kernel, const Problem& problem, LayerWeight& weight);
  // Microseconds of each, measured side by side; none if one is suspect.
  StatusOr<std::vector<double>> RaceBlockings(const Kernel& kernel, const Problem& problem, LayerWeight& weight);
  void StartBudget(double share);
  bool MayMeasure() const { return measures_ && options_.gate->Spent() < budget_end_; }
  StatusOr<std::vector<MeasuredTime>> Measure(std::span<const Contender> contenders, const Problem& problem);
  // Whether a candidate with this time at the first batch size can be left out at sizes_[b].
  bool CannotWin(double microseconds, double least, size_t b) const;
  // Whether several rows take as long as each alone, one after the other: on the CPU, where the activations of one
  // are 512 Ki elements, which in FP32 are more than a core's caches, and more than the weight. `problem` is that of
  // the first batch size.
  bool AddsUp(const Problem& problem, const Weight* weight) const;

  Backend& backend_;
  const MeasuredOn on_;
  const RunSettings settings_;
  const PlanThroughput throughput_;
  const bool dense_only_;
  const std::vector<BatchSize> sizes_;
  TuningCache* const cache_;
  const PlanOptions& options_;
  const bool measures_;
  absl::Duration budget_end_;  // by the gate's clock
  int64_t measurements_left_ = 1;
  int suspect_ = 0;
  int untimed_layers_ = 0;
  int timed_now_ = 0;
  int timed_before_ = 0;
  std::map<std::vector<int64_t>, std::vector<double>> conversions_;  // by extent and storage
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATES_H_
