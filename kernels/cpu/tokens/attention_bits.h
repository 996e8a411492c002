// An attention pattern as bits, for kernels that meet blocks of queries with all keys. Immutable after it is made.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BITS_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BITS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/format/attention_pattern.h"

namespace swizzle::cpu {

class AttentionBits final : public PackedWeight {
 public:
  // REQUIRES: pattern.Validate() is OK.
  explicit AttentionBits(const AttentionPattern& pattern);

  // Of the 64 queries from `query` on, bit i being query + i, those that attend to `key`. REQUIRES: both are below the
  // pattern's tokens.
  uint64_t At(int64_t key, int64_t query) const {
    const uint64_t* words = bits_.data() + key * words_ + query / 64;
    const int shift = static_cast<int>(query % 64);
    return shift == 0 ? words[0] : words[0] >> shift | words[1] << (64 - shift);
  }

  size_t bytes() const override { return bits_.size() * sizeof(uint64_t); }

 private:
  int64_t words_;  // of a key; one more than its queries fill
  std::vector<uint64_t> bits_;
};

// Sequences whose bits fit in 128 MiB.
bool AcceptsAttentionBits(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionBits(const Weight& weight, const Problem& problem);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BITS_H_
