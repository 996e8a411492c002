#include "model_loader/pack/network_runner.h"

#include <algorithm>
#include <utility>

#include "model_loader/plan/run/token_packing.h"

namespace swizzle::pack {
namespace {

// How long drawn sequences are where the caller does not say.
constexpr int64_t kSomeLength = 24;

int64_t LengthFor(const Network& network, int64_t wanted) {
  if (!network.sequences) return 1;
  if (network.sequences->length > 0) return network.sequences->length;
  if (wanted > 0) return wanted;
  const int64_t positions = network.LookupLimit(-1);
  return positions == 0 ? kSomeLength : std::min(kSomeLength, positions);
}

}  // namespace

Shape ShapeAt(const Network& network, const NetworkPort& port, int64_t batch, int64_t length) {
  Shape shape = port.dims;
  std::replace(shape.begin(), shape.end(), int64_t{-1}, length);
  if (network.batch_size == 0) shape.insert(shape.begin(), batch);
  return shape;
}

StatusOr<NetworkRunner> NetworkRunner::Make(Network network, Backend& backend, int64_t batch, int threads,
                                            int64_t length) {
  if (network.batch_size > 0) batch = network.batch_size;
  length = LengthFor(network, length);
  // Enough to find kernels that are not slow; a few runs do not pay for more.
  const PlanOptions options{
      .max_batch = batch, .max_tokens = batch * length, .threads = threads, .tuning_budget = absl::ZeroDuration()};
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(network), backend, options));
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, plan->NewRunner({}));
  return NetworkRunner(std::move(plan), std::move(runner), batch, length);
}

size_t NetworkRunner::InputElements(int i) const {
  const int value = inputs()[i].value;
  const int64_t row = network().sequences || value == -1 ? length_ : network().values[value].elements();
  return static_cast<size_t>(batch_ * row);
}

StatusOr<std::vector<std::vector<float>>> NetworkRunner::Run(const std::vector<std::vector<float>>& inputs) {
  SWIZZLE_CHECK(inputs.size() == this->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) SWIZZLE_CHECK(inputs[i].size() == InputElements(static_cast<int>(i)));
  if (network().sequences) return RunSequences(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (this->inputs()[i].dtype == DType::kUint8) {
      std::ranges::transform(inputs[i], runner_->InputMemory(input, batch_).begin(),
                             [](float x) { return static_cast<std::byte>(x); });
    } else {
      std::ranges::copy(inputs[i], runner_->Input(input, batch_).begin());
    }
  }
  SWIZZLE_RETURN_IF_ERROR(runner_->Run(batch_));
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs().size(); ++i) {
    const auto output = runner_->Output(static_cast<int>(i), batch_);
    results.emplace_back(output.begin(), output.end());
  }
  return results;
}

StatusOr<std::vector<std::vector<float>>> NetworkRunner::RunSequences(const std::vector<std::vector<float>>& inputs) {
  TokenPacking packing(PackingRulesOf(network(), /*compute_masked=*/false));
  std::vector<int64_t> mask_elements, counted_elements;
  const auto view_of = [&](int input, std::vector<int64_t>& elements) -> std::optional<TensorView> {
    if (input < 0) return std::nullopt;
    elements.assign(inputs[input].begin(), inputs[input].end());
    return TensorView{DType::kInt64, {batch_, length_}, std::as_bytes(std::span(elements))};
  };
  packing.Add(batch_, length_, view_of(network().sequences->mask, mask_elements),
              view_of(network().sequences->counted, counted_elements));
  const BatchSize size(batch_, packing.tokens());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IdLimit(static_cast<int>(i)) == 0) continue;
    const std::span<int32_t> ids = runner_->Ids(static_cast<int>(i), size);
    for (int64_t token = 0; token < size.tokens; ++token) {
      ids[token] = static_cast<int32_t>(inputs[i][packing.sources()[token]]);
    }
  }
  const Sequences sequences = packing.sequences();
  SWIZZLE_RETURN_IF_ERROR(runner_->Run(size, &sequences));
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs().size(); ++i) {
    const auto output = runner_->Output(static_cast<int>(i), size);
    const NetworkValue& value = network().values[outputs()[i].value];
    if (value.per_token) {
      std::vector<float>& spread = results.emplace_back(batch_ * length_ * value.channels);
      packing.Spread(0, size.tokens, std::as_bytes(output).data(), value.channels * sizeof(float),
                     std::as_writable_bytes(std::span(spread)).data());
    } else {
      results.emplace_back(output.begin(), output.end());
    }
  }
  return results;
}

}  // namespace swizzle::pack
