// What one executor runs a program with, wherever that runs. Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_PROGRAM_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_PROGRAM_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model_loader/interpreter/memory/block_range.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/plan/run/model_runner.h"

namespace swizzle::interpreter {

class ProgramRunner : public ModelRunner {
 public:
  // As Program::Run; the outputs stand on the host until the next run.
  virtual StatusOr<std::vector<Array>> RunArrays(std::span<const TensorPieces> inputs) = 0;
  // Runs on inputs that are in one piece each.
  StatusOr<std::vector<Array>> Run(std::span<const TensorView> inputs);

  StatusOr<PartOutputs> RunPart(std::span<const TensorPieces> inputs, const BatchPart& part) final;

 private:
  std::vector<Array> shown_;  // what there are views of
};

// On the host.
class HostProgramRunner final : public ProgramRunner {
 public:
  // gate: RunSupplies::gate, which outlives it.
  HostProgramRunner(std::shared_ptr<const Program> program, std::unique_ptr<Stream> stream, const Limits& limits,
                    StepGate* gate)
      : program_(std::move(program)),
        stream_(std::move(stream)),
        limits_(limits),
        supplies_{std::make_shared<BlockRange>(limits.budget, BlockRange::AddressesFor(limits.max_live_bytes)), gate,
                  nullptr, true} {}

  StatusOr<std::vector<Array>> RunArrays(std::span<const TensorPieces> inputs) override;
  int threads(int64_t) const override { return stream_->threads(); }

 private:
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<Stream> stream_;
  const Limits limits_;
  const RunSupplies supplies_;
  std::vector<std::vector<std::byte>> joined_;  // by input: its pieces, where these are several
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_PROGRAM_RUNNER_H_
