// Under what conditions whole plans are timed: when, and whether something disturbed it.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_CONDITIONS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_CONDITIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "kernels/measure/machine_watch.h"
#include "kernels/measure/measure_gate.h"
#include "model_loader/plan/choose/plan_options.h"

namespace swizzle {

// A whole plan takes longer than a time slice, so that beside busy neighbours there may be no run without a
// disturbance. Trials are therefore compared by medians of ratios, and once some were disturbed by what their work
// takes (MachineWatch::StopWork), too; whoever keeps a time asks whether to trust it. Single-owner.
class TrialConditions {
 public:
  // Of the options, the gate and the maker of watches.
  explicit TrialConditions(const PlanOptions& options) : gate_(*options.gate), make_watch_(options.make_watch) {}

  absl::Duration Spent() { return gate_.Spent(); }

  // Around the making of what runs the trials: threads that are made in between are watched.
  void BeforeThreads();
  void AfterThreads();

  // Before a run that is timed. CANCELLED if the gate says so.
  Status Begin();
  // After it.
  void End();
  // Around what counts of the run, as often as need be: what its work took. None as long as no run was disturbed.
  void StartWork();
  std::optional<absl::Duration> StopWork();

  // Whether so many runs were disturbed since TakeSuspicion that their times aren't to be kept.
  bool IsSuspicious() const;
  // The same; what is asked is counted.
  bool TakeSuspicion();
  int suspect() const { return suspect_; }
  // Forgets what was disturbed: the work of the runs was compared, which nothing disturbs. Its times may be kept.
  void TrustWork() { runs_ = disturbed_ = 0; }

  // Says that there was no budget to find something out.
  void AddUntimed() { ++untimed_; }
  int untimed() const { return untimed_; }

 private:
  MeasureGate& gate_;
  std::unique_ptr<MachineWatch> (*const make_watch_)(const std::set<int>&);
  std::set<int> threads_before_;
  std::unique_ptr<MachineWatch> watch_;  // null: none
  ThreadReading before_;
  int64_t others_ = 0;
  absl::Duration start_;
  bool times_work_ = false;  // of the run that is under way
  int runs_ = 0, disturbed_ = 0;
  int suspect_ = 0;
  int untimed_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_CONDITIONS_H_
