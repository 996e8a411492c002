// What one executor runs a program with, wherever that runs. Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_PROGRAM_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_PROGRAM_RUNNER_H_

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model_loader/fallback/block_range.h"
#include "model_loader/fallback/executor.h"

namespace swizzle::fallback {

class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  // As Program::Run; the outputs stand on the host until the next run.
  virtual StatusOr<std::vector<Array>> Run(std::span<const TensorView> inputs) = 0;
  virtual int threads() const = 0;  // of the host's that compute
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

  StatusOr<std::vector<Array>> Run(std::span<const TensorView> inputs) override {
    return program_->Run(inputs, *stream_, limits_, nullptr, supplies_);
  }
  int threads() const override { return stream_->threads(); }

 private:
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<Stream> stream_;
  const Limits limits_;
  const RunSupplies supplies_;
};

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_PROGRAM_RUNNER_H_
