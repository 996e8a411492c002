#include "kernels/cpu/tokens/attention_bits.h"

namespace swizzle::cpu {

AttentionBits::AttentionBits(const AttentionPattern& pattern)
    : words_(pattern.tokens / 64 + 2), bits_(static_cast<size_t>(pattern.tokens * words_)) {
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (int64_t key : pattern.Keys(query)) bits_[key * words_ + query / 64] |= uint64_t{1} << (query % 64);
  }
}

bool AcceptsAttentionBits(const Problem& problem) {
  constexpr int64_t kMost = int64_t{1} << 15;
  return problem.attention().length <= kMost;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionBits(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  return std::make_unique<AttentionBits>(*pattern);
}

}  // namespace swizzle::cpu
