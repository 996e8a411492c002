#include "model_loader/plan/run/token_packing.h"

#include <cstring>

namespace swizzle {
namespace {

bool IsMasked(const std::optional<TensorView>& mask, int64_t i) { return mask && WholeAt(*mask, i) == 0; }

// How many tokens a sequence has up to its end, itself included; its numbers start at element `first` of `ends`.
int64_t LengthToEnd(const PackingRules& rules, int64_t length, const std::optional<TensorView>& ends, int64_t first) {
  if (!rules.end) return length;
  int64_t end = 0;
  if (rules.end->at_largest) {
    for (int64_t i = 1; i < length; ++i) {
      if (WholeAt(*ends, first + i) > WholeAt(*ends, first + end)) end = i;
    }
  } else {
    while (end < length && WholeAt(*ends, first + end) != rules.end->id) ++end;
  }
  return end < length ? end + 1 : 1;
}

// Calls visit(position, masked) for the tokens of one sequence that are computed; its mask starts at element `first`.
template <typename Visit>
void ForEachComputed(const PackingRules& rules, int64_t length, const std::optional<TensorView>& mask, int64_t first,
                     const Visit& visit) {
  const auto is_kept = [&](int64_t position, bool masked) {
    return !masked || !rules.skips_masked || (rules.keeps_first && position == 0) ||
           (rules.keeps_last && position + 1 == length);
  };
  const auto leaves_out = [&](int64_t position) { return !is_kept(position, IsMasked(mask, first + position)); };
  int64_t begin = 0, end = length;
  while (begin + 1 < length && leaves_out(begin)) ++begin;
  while (end - 1 > begin && leaves_out(end - 1)) --end;
  const bool keeps_all = rules.keeps_between || end - begin == 1;  // where all are masked, the last is left
  for (int64_t position = begin; position < end; ++position) {
    const bool masked = IsMasked(mask, first + position);
    if (keeps_all || is_kept(position, masked)) visit(position, masked);
  }
}

// The positions of a sequence's tokens, asked for in order; its numbers start at element `first` of `counted`.
class PositionCounter {
 public:
  PositionCounter(std::optional<int64_t> padding, const std::optional<TensorView>& counted, int64_t first)
      : padding_(padding), counted_(counted), first_(first) {}

  int64_t At(int64_t token) {
    if (!padding_) return token;
    for (; next_ <= token; ++next_) count_ += IsPadding(next_) ? 0 : 1;
    return IsPadding(token) ? 0 : count_;
  }

 private:
  bool IsPadding(int64_t token) const { return WholeAt(*counted_, first_ + token) == *padding_; }

  const std::optional<int64_t> padding_;
  const std::optional<TensorView>& counted_;
  const int64_t first_;
  int64_t next_ = 0, count_ = 0;
};

}  // namespace

PackingRules PackingRulesOf(const Network& network, bool compute_masked) {
  const SequenceInputs& sequences = *network.sequences;
  PackingRules rules;
  rules.masked_bias = sequences.masked_bias;
  rules.skips_masked = sequences.skips_masked && !compute_masked;
  if (sequences.counted != -1) rules.padding = sequences.padding;
  if (sequences.end.input != -1) rules.end = sequences.end;
  for (const Layer& layer : network.layers) {
    if (layer.op != Op::kSelectToken) continue;
    const int64_t token = layer.token_choice().token;
    rules.keeps_first = rules.keeps_first || token == 0;
    rules.keeps_last = rules.keeps_last || token == -1;
    // A token in between is found by counting, so that all have to be there.
    if (token != 0 && token != -1) rules.skips_masked = false;
  }
  for (const Layer& layer : network.layers) {
    if (layer.op != Op::kBiasedAttention && layer.op != Op::kDisentangledAttention) continue;
    // Distances stay what they are where nothing between two tokens is left out; places are those of all.
    rules.keeps_between = true;
    if (layer.attention().length > 0) rules.skips_masked = false;
  }
  return rules;
}

int64_t WholeAt(const TensorView& tensor, int64_t i) {
  if (tensor.dtype == DType::kInt32) {
    int32_t whole;
    std::memcpy(&whole, tensor.bytes.data() + i * static_cast<int64_t>(sizeof(whole)), sizeof(whole));
    return whole;
  }
  int64_t whole;
  std::memcpy(&whole, tensor.bytes.data() + i * static_cast<int64_t>(sizeof(whole)), sizeof(whole));
  return whole;
}

int64_t CountTokens(const PackingRules& rules, int64_t rows, int64_t length, const std::optional<TensorView>& mask,
                    const std::optional<TensorView>& ends) {
  SWIZZLE_CHECK(!rules.end || ends);
  const bool counts = (mask && rules.skips_masked) || rules.end;
  if (!counts) return rows * length;
  int64_t tokens = 0;
  for (int64_t row = 0; row < rows; ++row) {
    ForEachComputed(rules, LengthToEnd(rules, length, ends, row * length), mask, row * length,
                    [&](int64_t, bool) { ++tokens; });
  }
  return tokens;
}

void TokenPacking::Clear() {
  begins_.assign(1, 0);
  positions_.clear();
  sources_.clear();
  key_bias_.clear();
  computes_masked_ = false;
}

void TokenPacking::Add(int64_t rows, int64_t length, const std::optional<TensorView>& mask,
                       const std::optional<TensorView>& counted, const std::optional<TensorView>& ends) {
  SWIZZLE_CHECK((!rules_.padding || counted) && (!rules_.end || ends));
  for (int64_t row = 0; row < rows; ++row) {
    PositionCounter positions(rules_.padding, counted, row * length);
    ForEachComputed(rules_, LengthToEnd(rules_, length, ends, row * length), mask, row * length,
                    [&](int64_t position, bool masked) {
                      positions_.push_back(static_cast<int32_t>(positions.At(position)));
                      sources_.push_back(row * length + position);
                      key_bias_.push_back(masked ? rules_.masked_bias : 0.0f);
                      computes_masked_ = computes_masked_ || masked;
                    });
    begins_.push_back(static_cast<int32_t>(positions_.size()));
  }
}

void TokenPacking::Spread(int64_t begin, int64_t end, const std::byte* from, size_t line_bytes, std::byte* to) const {
  for (int64_t token = begin; token < end; ++token) {
    // Masked tokens that are computed for others' sake are given as those that are not computed.
    if (rules_.skips_masked && key_bias_[static_cast<size_t>(token)] != 0.0f) continue;
    std::memcpy(to + static_cast<size_t>(sources_[token]) * line_bytes, from + static_cast<size_t>(token) * line_bytes,
                line_bytes);
  }
}

Sequences TokenPacking::sequences() const {
  return {begins_, positions_, computes_masked_ ? std::span<const float>(key_bias_) : std::span<const float>()};
}

}  // namespace swizzle
