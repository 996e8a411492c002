// Packs the token sequences of a batch: one after the other, with no padding, and without the tokens that a mask
// excludes where nothing reads what would be computed of them.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_TOKEN_PACKING_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_TOKEN_PACKING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/base/sequences.h"
#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/network/network.h"

namespace swizzle {

// Which tokens are computed, whatever the requests hold.
struct PackingRules {
  bool skips_masked = false;   // tokens whose mask is 0 are left out,
  bool keeps_first = false;    // but not the first of a sequence,
  bool keeps_last = false;     // or the last,
  bool keeps_between = false;  // or those between others that are computed
  float masked_bias = 0.0f;    // Sequences::key_bias of tokens whose mask is 0 and that are computed all the same
  // Positions count, from 1, the tokens that do not hold this number, and are 0 where one does; absent: all, from 0.
  std::optional<int64_t> padding = {};
  std::optional<SequenceEnd> end = {};  // what stands behind it is left out
};

// Returns the rules of a network that has sequences. compute_masked: nothing is left out but what is behind an end.
PackingRules PackingRulesOf(const Network& network, bool compute_masked);

// Element `i` of a tensor of INT64 or INT32.
int64_t WholeAt(const TensorView& tensor, int64_t i);

// How many tokens of a request [rows, length] are computed; every sequence has at least one. `mask`, of that shape,
// holds 0 and 1; absent: all ones. `ends`, likewise, is the input SequenceEnd::input. REQUIRES: length >= 1; `ends` is
// there where the rules have an end.
int64_t CountTokens(const PackingRules& rules, int64_t rows, int64_t length, const std::optional<TensorView>& mask,
                    const std::optional<TensorView>& ends = {});

// The packed sequences of one batch. Single-owner; reused from batch to batch.
class TokenPacking {
 public:
  explicit TokenPacking(const PackingRules& rules) : rules_(rules) {}

  void Clear();
  // As CountTokens. `counted`, of that shape, is the input SequenceInputs::counted. REQUIRES: it is there where the
  // rules have padding.
  void Add(int64_t rows, int64_t length, const std::optional<TensorView>& mask,
           const std::optional<TensorView>& counted = {}, const std::optional<TensorView>& ends = {});

  int64_t rows() const { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(sources_.size()); }
  // Valid until the next call of another method.
  Sequences sequences() const;
  // Where each token stands in its request, row * length + position; of all requests added, in order.
  std::span<const int64_t> sources() const { return sources_; }

  // Copies the lines of `from`, a matrix with a line of `line_bytes` for each token, of tokens [begin, end) to where
  // they stand in their request. Lines of tokens that were not computed stay as they are, and so do those of masked
  // ones where the rules skip these.
  void Spread(int64_t begin, int64_t end, const std::byte* from, size_t line_bytes, std::byte* to) const;

 private:
  const PackingRules rules_;
  std::vector<int32_t> begins_ = {0};
  std::vector<int32_t> positions_;
  std::vector<int64_t> sources_;
  std::vector<float> key_bias_;
  bool computes_masked_ = false;  // some token's mask is 0
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_TOKEN_PACKING_H_
