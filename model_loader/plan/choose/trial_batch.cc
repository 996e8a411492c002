#include "model_loader/plan/choose/trial_batch.h"

#include <algorithm>

namespace swizzle {

int64_t TrialLength(const Plan& plan) {
  constexpr int64_t kLength = 128;
  const Network& network = plan.network();
  if (!network.sequences) return 0;
  if (network.sequences->length > 0) return network.sequences->length;
  const int64_t positions = plan.PositionLimit();
  const int64_t rows = network.batch_size > 0 ? plan.max_batch() : 1;
  return std::min({kLength, positions > 0 ? positions : kLength, plan.max_tokens() / rows});
}

void TrialBatch::Fill(int64_t rows) {
  const BatchSize size = SizeOf(rows);
  begins_.clear();
  positions_.clear();
  if (length_ > 0) {
    for (int64_t token = 0; token <= size.tokens; token += length_) begins_.push_back(static_cast<int32_t>(token));
    for (int64_t token = 0; token < size.tokens; ++token) positions_.push_back(static_cast<int32_t>(token % length_));
  }
  sequences_ = {begins_, positions_, {}};
  const auto& inputs = plan_.network().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int port = static_cast<int>(i);
    if (inputs[i].value == -1) continue;
    std::ranges::fill(runner_.InputMemory(port, size), std::byte{0});
  }
}

}  // namespace swizzle
