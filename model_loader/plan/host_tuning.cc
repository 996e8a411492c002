#include "model_loader/plan/host_tuning.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "model_loader/plan/choose/micro_batch.h"
#include "model_loader/plan/choose/serial_steps.h"
#include "model_loader/plan/choose/trial_batch.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {
namespace {

// A runner for a trial, and what it is given.
struct Trial {
  Trial(const Plan& plan, std::unique_ptr<HostRunner> made) : runner(std::move(made)), batch(plan, *runner) {}

  std::unique_ptr<HostRunner> runner;
  TrialBatch batch;
};

// The rows of what counts as a small batch: one, or the fewest that the caller asked to measure, or the fixed batch.
int64_t SmallBatch(const Plan& plan, const PlanOptions& options) {
  if (plan.network().batch_size > 0) return plan.max_batch();
  if (options.measured_batches.empty() || plan.network().sequences) return 1;
  return std::min(std::ranges::min(options.measured_batches), plan.max_batch());
}

// Which steps run on one thread in a small batch, a row of sequences being one of middling length. `plan` runs none so.
StatusOr<SerialSteps> TuneSerialSteps(HostBackend& backend, const Plan& plan, const Assembly& assembly,
                                      const PlanOptions& options, TrialConditions& conditions) {
  const std::shared_ptr<const Program>& program = assembly.program;
  SerialSteps serial;
  if (program->threads() == 1) return serial;
  const int64_t rows = SmallBatch(plan, options);
  const int64_t tokens = rows * std::max<int64_t>(TrialLength(plan), 1);
  const ArenaBucket& bucket = program->BucketFor(BatchSize(rows, tokens));
  std::unique_ptr<Trial> trial;  // made where something is measured
  const auto time_steps = [&](const std::vector<bool>& steps) -> StatusOr<std::vector<absl::Duration>> {
    if (trial == nullptr) {
      conditions.BeforeThreads();
      SWIZZLE_ASSIGN_OR_RETURN(auto runner, HostRunner::Make(backend, program, {}, {}));
      conditions.AfterThreads();
      trial = std::make_unique<Trial>(plan, std::move(runner));
    }
    trial->batch.Fill(rows);
    return trial->runner->TimeSteps(trial->batch.SizeOf(rows), trial->batch.sequences(), steps);
  };
  SWIZZLE_ASSIGN_OR_RETURN(serial.steps,
                           ChooseSerialSteps(static_cast<int>(program->ListOf(bucket).steps.size()),
                                             options.tuning_budget * TuningShare::kSerialSteps, options.tuning_cache,
                                             ExtendPlanHash(assembly.hash, tokens), time_steps, conditions));
  serial.list = bucket.list;
  if (std::ranges::count(serial.steps, true) > 0) serial.most = tokens;
  return serial;
}

}  // namespace

StatusOr<HostTuning> TuneOnHost(HostBackend& backend, const Assembly& assembly, const PlanReport& report,
                                const PlanOptions& options) {
  HostTuning tuning;
  TrialConditions conditions(options);
  const auto untuned = NewHostPlan(backend, assembly.program, {}, report);
  SWIZZLE_ASSIGN_OR_RETURN(tuning.serial, TuneSerialSteps(backend, *untuned, assembly, options, conditions));
  tuning.micro_batch = options.micro_batch;
  if (tuning.micro_batch == 0) {
    uint64_t hash = assembly.hash;
    for (size_t i = 0; i < tuning.serial.steps.size(); ++i) {
      if (tuning.serial.steps[i]) hash = ExtendPlanHash(hash, static_cast<int64_t>(i));
    }
    const auto trial = NewHostPlan(backend, assembly.program, tuning.serial, report);
    SWIZZLE_ASSIGN_OR_RETURN(tuning.micro_batch,
                             ChooseMicroBatch(
                                 *trial, options.tuning_budget * TuningShare::kMicroBatch, options.tuning_cache, hash,
                                 [&] { return conditions.Spent(); }, conditions));
  }
  tuning.suspect = conditions.suspect();
  tuning.complete = conditions.untimed() == 0;
  return tuning;
}

}  // namespace swizzle
