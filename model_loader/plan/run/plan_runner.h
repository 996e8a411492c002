// Runs a plan of a whole model as any model runs: arrays in, arrays out, each request's tokens packed.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_RUNNER_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model_loader/plan/run/model_runner.h"
#include "model_loader/plan/run/token_packing.h"

namespace swizzle {

// The dimensions of a port of `network` for so many rows: with the batch in front where that is free. Sequences whose
// length is free are of this one.
Shape DimsAt(const Network& network, const NetworkPort& port, int64_t rows, int64_t length = -1);

class PlanRunner final : public ModelRunner {
 public:
  static StatusOr<std::unique_ptr<PlanRunner>> Make(std::shared_ptr<const Plan> plan, const RunnerOptions& options);

  // Rows may be fewer than a network's fixed batch: so many of it are then a part. Of sequences, each input is
  // [rows, length] in one piece; what a mask excludes is zeros in outputs of each token. Ids beyond their table, masks
  // of other numbers than 0 and 1, and more rows or tokens than the plan takes are INVALID_ARGUMENT.
  StatusOr<PartOutputs> RunPart(std::span<const TensorPieces> inputs, const BatchPart& part) override;
  int threads(int64_t rows) const override { return rows <= plan_->report().small_batch ? 1 : plan_->report().threads; }
  int64_t rows_at_once() const override { return plan_->report().micro_batch; }

  const Plan& plan() const { return *plan_; }
  Runner& runner() { return *runner_; }

 private:
  PlanRunner(std::shared_ptr<const Plan> plan, std::unique_ptr<Runner> runner)
      : plan_(std::move(plan)), runner_(std::move(runner)) {}

  Status CheckInputs(std::span<const TensorPieces> inputs, const BatchPart& part) const;
  void Gather(std::span<const TensorPieces> inputs, int64_t rows);
  std::vector<TensorView> Outputs(int64_t rows);
  Status CheckSequences(std::span<const TensorPieces> inputs) const;
  Status CheckIds(int input, const TensorView& view) const;
  StatusOr<std::vector<TensorView>> RunSequences(std::span<const TensorPieces> inputs);
  TensorView OutputOfSequences(size_t output, Shape shape, BatchSize size);

  const std::shared_ptr<const Plan> plan_;
  const std::unique_ptr<Runner> runner_;        // gone before its plan
  std::optional<TokenPacking> packing_;         // of the sequences that run
  std::vector<std::vector<std::byte>> spread_;  // by output of each token, of the last run: its lines where they belong
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_RUNNER_H_
