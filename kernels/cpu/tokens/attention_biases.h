// Biases of pairs of places (Op::kBiasedAttention) as blocks of queries read them. Immutable after it is made.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BIASES_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BIASES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/operator/pair_biases.h"

namespace swizzle::cpu {

class AttentionBiases final : public PackedWeight {
 public:
  // `biases` is a valid weight of a layer with these attributes.
  AttentionBiases(const DenseMatrix& biases, const Attention& attention);

  // to[i] = the head's bias of `key` to query first_query + i, in units of log(2), for i < queries; places are those in
  // the sequence, or the window, that begins with the batch's token `begin`.
  void Fill(int64_t begin, int64_t head, int64_t key, int64_t first_query, int64_t queries, float* to) const;

  const DistanceRange& distances() const { return distances_; }
  size_t bytes() const override { return biases_.size() * sizeof(float) + of_window_.size() * sizeof(int32_t); }

 private:
  // A query's bias stands in column clamp(query + key * key_stride_ + offset_, 0, columns_ - 1) of a head's row: those
  // of queries are neighbours. Heads of windows with other biases come behind.
  int64_t key_stride_, offset_, columns_, heads_, window_tokens_;
  std::vector<int32_t> of_window_;  // which biases a window has
  DistanceRange distances_;
  std::vector<float> biases_;
};

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionBiases(const Weight& weight, const Problem& problem);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_BIASES_H_
