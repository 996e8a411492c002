#include "model_loader/pack/network_runner.h"

#include <algorithm>
#include <utility>

namespace swizzle::pack {

Shape ShapeWithBatch(const Network& network, const NetworkPort& port, int64_t batch) {
  Shape shape = port.dims;
  if (network.batch_size == 0) shape.insert(shape.begin(), batch);
  return shape;
}

StatusOr<NetworkRunner> NetworkRunner::Make(Network network, Backend& backend, int64_t batch, int threads) {
  // Enough to find kernels that are not slow; a few runs do not pay for more.
  const PlanOptions options{.max_batch = batch, .threads = threads, .tuning_budget = absl::ZeroDuration()};
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(network), backend, options));
  SWIZZLE_ASSIGN_OR_RETURN(ExecutionState state, plan->NewState());
  return NetworkRunner(std::move(plan), std::move(state));
}

StatusOr<std::vector<std::vector<float>>> NetworkRunner::Run(const std::vector<std::vector<float>>& inputs) {
  SWIZZLE_CHECK(inputs.size() == this->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto target = plan_->Input(state_, static_cast<int>(i), batch());
    SWIZZLE_CHECK(target.size() == inputs[i].size());
    std::copy(inputs[i].begin(), inputs[i].end(), target.begin());
  }
  SWIZZLE_RETURN_IF_ERROR(plan_->Run(state_, batch()));
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs().size(); ++i) {
    const auto output = plan_->Output(state_, static_cast<int>(i), batch());
    results.emplace_back(output.begin(), output.end());
  }
  return results;
}

}  // namespace swizzle::pack
