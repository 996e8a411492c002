// Plans on the host: inputs and outputs lie in the arena itself, small batches may run some steps on one thread, and a
// large batch may come in parts that share a tail.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_HOST_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_HOST_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/program.h"

namespace swizzle {

// Which steps of a list the caller's thread runs alone where a batch is small.
struct SerialSteps {
  int64_t most = 0;  // rows, or tokens where there are sequences, of such a batch; 0: none
  int list = 0;      // of the program's
  std::vector<bool> steps;
};

class HostRunner final : public Runner {
 public:
  // RESOURCE_EXHAUSTED if the arena cannot be had. `backend` outlives the runner.
  static StatusOr<std::unique_ptr<HostRunner>> Make(HostBackend& backend, std::shared_ptr<const Program> program,
                                                    SerialSteps serial, const RunnerOptions& options);

  std::span<float> Input(int i, BatchSize size) override;
  std::span<const float> Output(int i, BatchSize size) override;
  std::span<int32_t> Ids(int i, BatchSize size) override;
  std::span<std::byte> InputMemory(int i, BatchSize size) override;
  void WriteInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override;
  void CopyInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override;
  Status Run(BatchSize size, const Sequences* sequences = nullptr) override;
  // Threads go to sleep after the last part.
  Status RunPart(BatchPart part) override;

  // Runs each step of a batch, those on one thread that `serial` says, and returns how long each took.
  StatusOr<std::vector<absl::Duration>> TimeSteps(BatchSize size, const Sequences* sequences,
                                                  const std::vector<bool>& serial);
  const StepList& ListFor(BatchSize size) const { return program_->ListOf(program_->BucketFor(size)); }

 private:
  HostRunner(HostBackend& backend, std::shared_ptr<const Program> program, SerialSteps serial,
             std::unique_ptr<HostStream> stream, std::unique_ptr<Buffer> arena, StepGate* gate);

  // Steps [first, last) of the list for this size. An error is of one of them.
  Status RunSteps(BatchSize size, const Sequences* sequences, size_t first, size_t last);
  std::byte* TailData(BatchSize size);

  HostBackend& backend_;
  const std::shared_ptr<const Program> program_;
  const SerialSteps serial_;
  const std::unique_ptr<HostStream> stream_;
  const std::unique_ptr<Buffer> arena_;
  StepGate* const gate_;          // null: none
  std::unique_ptr<Buffer> held_;  // what parts of a batch leave to its tail; null before the first
};

std::shared_ptr<const Plan> NewHostPlan(HostBackend& backend, std::shared_ptr<const Program> program,
                                        SerialSteps serial, PlanReport report);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_HOST_PLAN_H_
