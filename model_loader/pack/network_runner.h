// Runs a network on this machine's CPU, whole arrays in and out. Slow to make; single-owner.
#ifndef SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "model_loader/plan/planner.h"

namespace swizzle::pack {

// The dimensions of a port of `network`, with the batch and the length of sequences where these are free.
Shape ShapeAt(const Network& network, const NetworkPort& port, int64_t batch, int64_t length);

class NetworkRunner {
 public:
  // For `batch` rows at a time (the network's own batch where that is fixed), which in a network of token sequences
  // have `length` tokens (likewise; 0: some). threads: 0 takes all. `backend` must outlive the runner.
  static StatusOr<NetworkRunner> Make(Network network, Backend& backend, int64_t batch, int threads,
                                      int64_t length = 0);

  int64_t batch() const { return batch_; }
  int64_t length() const { return length_; }                   // 1 without sequences
  const Network& network() const { return plan_->network(); }  // without its weights
  const std::vector<NetworkPort>& inputs() const { return plan_->network().inputs; }
  const std::vector<NetworkPort>& outputs() const { return plan_->network().outputs; }

  // Elements of input i for the whole batch.
  size_t InputElements(int i) const;
  bool IsMask(int i) const { return network().sequences && network().sequences->mask == i; }
  // What the whole numbers of input i have to be below; 0 where it takes any number.
  int64_t IdLimit(int i) const { return plan_->IdLimit(i); }

  // The outputs in order. REQUIRES: an array of InputElements(i) floats for each input; ids, masks and bytes, as floats
  // too, are in range.
  StatusOr<std::vector<std::vector<float>>> Run(const std::vector<std::vector<float>>& inputs);

 private:
  NetworkRunner(std::shared_ptr<const Plan> plan, std::unique_ptr<Runner> runner, int64_t batch, int64_t length)
      : plan_(std::move(plan)), runner_(std::move(runner)), batch_(batch), length_(length) {}

  StatusOr<std::vector<std::vector<float>>> RunSequences(const std::vector<std::vector<float>>& inputs);

  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Runner> runner_;
  int64_t batch_;
  int64_t length_;
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_NETWORK_RUNNER_H_
