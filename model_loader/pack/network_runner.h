// Runs a network on this machine's CPU, whole arrays in and out. A network of token sequences is given sequences of one
// length, with no mask. Slow to make; single-owner.
#ifndef SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "model_loader/plan/plan.h"

namespace swizzle::pack {

// The dimensions of a port of `network` with the batch: `batch` rows where that is free.
Shape ShapeWithBatch(const Network& network, const NetworkPort& port, int64_t batch);

class NetworkRunner {
 public:
  // For `batch` rows at a time (the network's own batch where that is fixed). threads: 0 takes all. `backend` must
  // outlive the runner.
  static StatusOr<NetworkRunner> Make(Network network, Backend& backend, int64_t batch, int threads);

  int64_t batch() const { return size_.rows; }
  const Network& network() const { return plan_->network(); }  // without its weights
  const std::vector<NetworkPort>& inputs() const { return plan_->network().inputs; }
  const std::vector<NetworkPort>& outputs() const { return plan_->network().outputs; }

  // Elements of input i for the whole batch; 0 for a mask.
  size_t InputElements(int i) { return inputs()[i].value == -1 ? 0 : plan_->Input(state_, i, size_).size(); }
  // What the whole numbers of input i have to be below; 0 where it takes any number.
  int64_t IdLimit(int i) const { return plan_->IdLimit(i); }

  // The outputs in order. REQUIRES: an array of InputElements(i) floats for each input.
  StatusOr<std::vector<std::vector<float>>> Run(const std::vector<std::vector<float>>& inputs);

 private:
  NetworkRunner(std::shared_ptr<const Plan> plan, ExecutionState state, BatchSize size);

  std::shared_ptr<const Plan> plan_;
  ExecutionState state_;
  BatchSize size_;
  std::vector<int32_t> begins_, positions_;  // of the sequences
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_
