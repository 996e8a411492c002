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
  constexpr int64_t kFreeLength = 24;
  const int64_t rows = network.batch_size > 0 ? network.batch_size : batch;
  int64_t length = 1;
  if (network.sequences) {
    const int64_t positions = network.LookupLimit(-1);
    length = network.sequences->length > 0 ? network.sequences->length : kFreeLength;
    if (positions > 0) length = std::min(length, positions);
  }
  const BatchSize size(rows, rows * length);
  const PlanOptions options{.max_batch = rows,
                            .max_tokens = size.tokens,
                            .threads = threads,
                            .tuning_budget = absl::ZeroDuration()};
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(network), backend, options));
  SWIZZLE_ASSIGN_OR_RETURN(ExecutionState state, plan->NewState());
  return NetworkRunner(std::move(plan), std::move(state), size);
}

NetworkRunner::NetworkRunner(std::shared_ptr<const Plan> plan, ExecutionState state, BatchSize size)
    : plan_(std::move(plan)), state_(std::move(state)), size_(size) {
  const int64_t length = size.tokens / size.rows;
  for (int64_t token = 0; token < size.tokens; ++token) {
    if (token % length == 0) begins_.push_back(static_cast<int32_t>(token));
    positions_.push_back(static_cast<int32_t>(token % length));
  }
  begins_.push_back(static_cast<int32_t>(size.tokens));
}

StatusOr<std::vector<std::vector<float>>> NetworkRunner::Run(const std::vector<std::vector<float>>& inputs) {
  SWIZZLE_CHECK(inputs.size() == this->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int port = static_cast<int>(i);
    SWIZZLE_CHECK(InputElements(port) == inputs[i].size());
    if (inputs[i].empty()) continue;
    if (IdLimit(port) > 0) {
      std::copy(inputs[i].begin(), inputs[i].end(), plan_->Ids(state_, port, size_).begin());
    } else {
      std::copy(inputs[i].begin(), inputs[i].end(), plan_->Input(state_, port, size_).begin());
    }
  }
  const Sequences sequences{begins_, positions_, {}};
  SWIZZLE_RETURN_IF_ERROR(plan_->Run(state_, size_, network().sequences ? &sequences : nullptr));
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs().size(); ++i) {
    const auto output = plan_->Output(state_, static_cast<int>(i), size_);
    results.emplace_back(output.begin(), output.end());
  }
  return results;
}

}  // namespace swizzle::pack
