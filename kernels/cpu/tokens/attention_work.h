// How attention is cut into work: which blocks of queries each thread takes, and its part of the workspace.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_WORK_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_WORK_H_

#include <algorithm>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"

namespace swizzle::cpu {

// The most queries and keys that meet at once. A short sequence's keys are one block, whose sums go from registers to
// the output.
inline constexpr int64_t kQueryBlock = 64;
inline constexpr int64_t kKeyBlock = 128;

// Some queries of one sequence and head, in tokens of the batch.
struct QueryBlock {
  int64_t head;
  int64_t first_key, last_key;      // the sequence, or its window
  int64_t first_query, last_query;  // [first, last) likewise
};

// Queries come in blocks of whole vectors, spread evenly over a sequence.
class AttentionWork {
 public:
  // block: queries of a block at most, a multiple of `lanes`. Windows count as sequences.
  AttentionWork(const Sequences& sequences, const Attention& attention, int64_t lanes, int64_t block)
      : sequences_(sequences),
        heads_(attention.heads),
        window_(attention.windows > 1 ? attention.length : 0),
        count_(sequences.count() * attention.windows),
        lanes_(lanes),
        block_(block) {
    for (int64_t i = 0; i < count_; ++i) cost_ += CostOf(i);
  }

  // Calls visit(QueryBlock) for part `slot` of `slots` parts of about equal cost; the parts cover every block once.
  template <typename Visit>
  void ForEachBlock(int64_t slot, int64_t slots, const Visit& visit) const {
    const int64_t low = cost_ * slot / slots, high = cost_ * (slot + 1) / slots;
    int64_t before = 0;  // the cost of all sequences so far
    for (int64_t i = 0; i < count_ && before < high; ++i) {
      const int64_t cost = CostOf(i), blocks = BlocksOf(i);
      if (cost == 0) continue;
      // Block j begins at cost * j / (heads * blocks): those that begin inside the part are its own.
      const auto first_from = [&](int64_t bound) {
        const int64_t inside = std::clamp<int64_t>(bound - before, 0, cost);
        return CeilDiv(inside * heads_ * blocks, cost);
      };
      int64_t left = first_from(high) - first_from(low);
      int64_t head = first_from(low) / blocks, index = first_from(low) % blocks;
      for (; left > 0; --left) {
        visit(BlockOf(i, head, index, blocks));
        if (++index == blocks) ++head, index = 0;
      }
      before += cost;
    }
  }

 private:
  int64_t BeginOf(int64_t i) const {
    return window_ == 0 ? sequences_.begins[i] : std::min<int64_t>(i * window_, sequences_.begins.back());
  }
  int64_t LengthOf(int64_t i) const { return BeginOf(i + 1) - BeginOf(i); }
  int64_t VectorsOf(int64_t i) const { return CeilDiv(LengthOf(i), lanes_); }
  int64_t BlocksOf(int64_t i) const { return CeilDiv(VectorsOf(i) * lanes_, block_); }
  // Every vector of queries meets every key; packing it costs about as much as some keys.
  int64_t CostOf(int64_t i) const { return heads_ * VectorsOf(i) * (LengthOf(i) + kOverheadKeys); }

  QueryBlock BlockOf(int64_t i, int64_t head, int64_t index, int64_t blocks) const {
    const int64_t begin = BeginOf(i), end = BeginOf(i + 1);
    if (blocks == 1) return {head, begin, end, begin, end};
    const int64_t vectors = VectorsOf(i);
    const int64_t first = begin + vectors * index / blocks * lanes_;
    const int64_t last = std::min(begin + vectors * (index + 1) / blocks * lanes_, end);
    return {head, begin, end, first, last};
  }

  static constexpr int64_t kOverheadKeys = 8;

  const Sequences& sequences_;
  const int64_t heads_;
  const int64_t window_;  // tokens of one; 0: there are none
  const int64_t count_;
  const int64_t lanes_;
  const int64_t block_;
  int64_t cost_ = 0;
};

// A thread's part of the workspace, in floats. Rows hold kQueryBlock queries at most.
struct AttentionScratch {
  explicit AttentionScratch(const Problem& problem)
      : head_channels(QueryChannels(problem) / problem.attention().heads),
        value_channels(problem.output.channels / problem.attention().heads),
        pair_biases(problem.op == Op::kBiasedAttention || problem.op == Op::kDisentangledAttention ? kKeyBlock : 0),
        places(problem.op == Op::kDisentangledAttention ? kQueryBlock + kKeyBlock : 0) {}
  AttentionScratch(int64_t of_queries, int64_t of_values) : head_channels(of_queries), value_channels(of_values) {}

  int64_t floats() const { return (head_channels + value_channels + kKeyBlock + pair_biases + places) * kQueryBlock; }
  int64_t sums_offset() const { return head_channels * kQueryBlock; }
  int64_t powers_offset() const { return (head_channels + value_channels) * kQueryBlock; }
  int64_t pair_biases_offset() const { return powers_offset() + kKeyBlock * kQueryBlock; }
  int64_t places_offset() const { return pair_biases_offset() + pair_biases * kQueryBlock; }

  int64_t head_channels;    // of queries and keys
  int64_t value_channels;   // of values and the output
  int64_t pair_biases = 0;  // keys of a block whose biases are held, for each of its queries
  int64_t places = 0;       // between two blocks, of which products are held, for each of the queries
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_WORK_H_
