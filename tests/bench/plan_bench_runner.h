// A plan of the whole with operands that were drawn, for plan_bench.
#ifndef SWIZZLE_TESTS_BENCH_PLAN_BENCH_RUNNER_H_
#define SWIZZLE_TESTS_BENCH_PLAN_BENCH_RUNNER_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "model_loader/plan/run/device_plan.h"
#include "model_loader/plan/run/host_plan.h"
#include "tests/bench/plan_bench_options.h"

namespace swizzle::bench {

// A plan with operands that were drawn, of the first batch that was asked for.
class BenchRunner {
 public:
  static StatusOr<BenchRunner> Make(const Network& network, Backend& backend, const PlanBenchOptions& options,
                                    const std::string& precision, bool dense_only) {
    const int64_t length = network.sequences ? options.length : 1;
    PlanOptions plan = OptionsOfPlan(options, precision, dense_only, length);
    TuningCache cache(options.tuning_cache, backend);
    SWIZZLE_RETURN_IF_ERROR(cache.status());
    if (!options.tuning_cache.empty()) plan.tuning_cache = &cache;
    SWIZZLE_ASSIGN_OR_RETURN(auto made, MakePlan(network, backend, plan));
    if (!options.tuning_cache.empty()) SWIZZLE_RETURN_IF_ERROR(cache.Save());
    const BatchSize size(options.batches[0], options.batches[0] * length);
    return Make(std::move(made), size, options.pin_threads ? std::optional(0) : std::nullopt);
  }

  // From now on so many rows are a batch.
  void SetRows(int64_t rows) { size_ = BatchSize(rows, rows * (size_.tokens / size_.rows)); }

  // Another executor of the same plan.
  StatusOr<BenchRunner> Another(std::optional<int> pinned_executor) const {
    return Make(plan_, size_, pinned_executor);
  }

  BatchSize size() const { return size_; }
  bool on_device() const { return dynamic_cast<HostRunner*>(runner_.get()) == nullptr; }
  bool has_sequences() const { return plan_->network().sequences.has_value(); }

  // Whether the plan is a device's, and has no sequences.
  bool copies_images() const { return copies_images_; }

  // Runs a batch whose images the device copies, as it does a server's.
  Status RunCopied() {
    size_t offset = 0;
    for (int i = 0; i < static_cast<int>(plan_->network().inputs.size()); ++i) {
      const size_t bytes = runner_->InputMemory(i, size_).size();
      if (source_ == nullptr) {
        SWIZZLE_ASSIGN_OR_RETURN(source_, plan_->AllocateSource(InputBytes()));
      }
      runner_->CopyInput(i, size_, 0, {source_->data() + offset, bytes});
      offset += bytes;
    }
    return runner_->Run(size_);
  }

  // Of one batch, in as many runs as a server would take. `computes_only`: the inputs are in the device's memory.
  StatusOr<double> Microseconds(bool computes_only = false) {
    const int64_t length = size_.tokens / size_.rows;
    const int64_t rows_at_once = std::max<int64_t>(1, plan_->report().micro_batch / length);
    const int64_t runs = CeilDiv(size_.rows, rows_at_once);
    double microseconds = 0;
    for (int64_t run = 0; run < runs; ++run) {
      const int64_t first = size_.rows * run / runs, rows = size_.rows * (run + 1) / runs - first;
      const BatchSize size(rows, rows * length);
      DrawInputs(size);  // again and again: a run may overwrite them
      SetSequences(size);
      const Sequences sequences = {begins_, positions_, {}};
      if (computes_only) runner_->CopyInput(0, size, 0, {});  // Run then takes all inputs to be there
      const auto start = std::chrono::steady_clock::now();
      const bool in_parts = runs > 1 && begins_.empty();
      SWIZZLE_RETURN_IF_ERROR(in_parts ? runner_->RunPart({first, rows, size_.rows})
                                       : runner_->Run(size, begins_.empty() ? nullptr : &sequences));
      microseconds += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    }
    return microseconds;
  }

  // Each step of a batch in microseconds: on the CPU all by all threads, on a device what it adds to those before it.
  StatusOr<std::vector<double>> StepMicroseconds() {
    std::vector<double> microseconds;
    DrawInputs(size_);
    SetSequences(size_);
    const Sequences sequences = {begins_, positions_, {}};
    const Sequences* const used = begins_.empty() ? nullptr : &sequences;
    StatusOr<std::vector<absl::Duration>> times = std::vector<absl::Duration>();
    if (auto* const host = dynamic_cast<HostRunner*>(runner_.get())) {
      times = host->TimeSteps(size_, used, std::vector<bool>(steps().size(), false));
    } else {
      SWIZZLE_RETURN_IF_ERROR(runner_->Run(size_, used));
      times = dynamic_cast<DeviceSteps&>(*runner_).TimeSteps(size_);
    }
    SWIZZLE_RETURN_IF_ERROR(times.status());
    for (const absl::Duration time : *times) microseconds.push_back(absl::ToDoubleMicroseconds(time));
    return microseconds;
  }
  const std::vector<Step>& steps() const {
    if (auto* const host = dynamic_cast<HostRunner*>(runner_.get())) return host->ListFor(size_).steps;
    return dynamic_cast<DeviceSteps&>(*runner_).ListFor(size_).steps;
  }

  const PlanReport& report() const { return plan_->report(); }
  size_t arena_bytes() const { return plan_->arena_bytes(); }

 private:
  explicit BenchRunner(BatchSize size) : size_(size) {}

  static StatusOr<BenchRunner> Make(std::shared_ptr<const Plan> plan, BatchSize size,
                                    std::optional<int> pinned_executor) {
    BenchRunner runner(size);
    runner.plan_ = std::move(plan);
    SWIZZLE_ASSIGN_OR_RETURN(runner.runner_, runner.plan_->NewRunner({.pinned_executor = pinned_executor}));
    SWIZZLE_ASSIGN_OR_RETURN(const auto source, runner.plan_->AllocateSource(1));
    runner.copies_images_ = source != nullptr && !runner.plan_->network().sequences;
    return runner;
  }

  size_t InputBytes() {
    size_t bytes = 0;
    for (int i = 0; i < static_cast<int>(plan_->network().inputs.size()); ++i) {
      bytes += runner_->InputMemory(i, size_).size();
    }
    return bytes;
  }

  void DrawInputs(BatchSize size) {
    const Network& network = plan_->network();
    uint32_t draw = 1;
    for (int i = 0; i < static_cast<int>(network.inputs.size()); ++i) {
      if (network.inputs[i].value == -1) continue;
      if (const int64_t limit = plan_->IdLimit(i); limit > 0) {
        for (int32_t& id : runner_->Ids(i, size)) id = static_cast<int32_t>((draw = draw * 1664525u + 1) % limit);
      } else if (network.inputs[i].dtype == DType::kUint8) {
        for (std::byte& x : runner_->InputMemory(i, size)) {
          x = static_cast<std::byte>((draw = draw * 1664525u + 1013904223u) >> 24);
        }
      } else {
        for (float& x : runner_->Input(i, size)) {
          x = static_cast<float>(static_cast<int32_t>(draw = draw * 1664525u + 1013904223u)) * 0x1p-31f;
        }
      }
    }
  }

  void SetSequences(BatchSize size) {
    if (!plan_->network().sequences) return;
    const int64_t length = size.tokens / size.rows;
    begins_.clear();
    positions_.clear();
    for (int64_t token = 0; token <= size.tokens; token += length) begins_.push_back(static_cast<int32_t>(token));
    for (int64_t token = 0; token < size.tokens; ++token) positions_.push_back(static_cast<int32_t>(token % length));
  }

  BatchSize size_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Buffer> source_;  // of RunCopied
  std::vector<int32_t> begins_, positions_;
  bool copies_images_ = false;
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_PLAN_BENCH_RUNNER_H_
