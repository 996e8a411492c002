#include "kernels/cpu/tokens/attention_biases.h"

#include <algorithm>

namespace swizzle::cpu {

AttentionBiases::AttentionBiases(const DenseMatrix& biases, const Attention& attention)
    : key_stride_(attention.length > 0 ? attention.length : -1),
      offset_(attention.reach),
      columns_(biases.cols),
      distances_(DistancesAttended(biases, attention)),
      biases_(biases.values.size()) {
  for (int64_t head = 0; head < biases.rows; ++head) {
    const float* const from = biases.values.data() + head * columns_;
    float* const to = biases_.data() + head * columns_;
    for (int64_t column = 0; column < columns_; ++column) {
      // Distances are counted from the key on here; of pairs the queries become neighbours.
      const int64_t length = attention.length;
      const int64_t at = length == 0 ? columns_ - 1 - column : column % length * length + column / length;
      to[at] = BiasInLog2(from[column]);
    }
  }
}

void AttentionBiases::Fill(int64_t head, int64_t key, int64_t first_query, int64_t queries, float* to) const {
  const float* const row = biases_.data() + head * columns_;
  const int64_t first = first_query + key * key_stride_ + offset_;
  const int64_t below = std::clamp<int64_t>(-first, 0, queries);
  const int64_t inside = std::clamp<int64_t>(columns_ - first, below, queries);
  std::fill(to, to + below, row[0]);
  if (inside > below) std::copy(row + first + below, row + first + inside, to + below);
  std::fill(to + inside, to + queries, row[columns_ - 1]);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionBiases(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto biases, weight.matrix.In<DenseMatrix>());
  return std::make_unique<AttentionBiases>(*biases, problem.attention());
}

}  // namespace swizzle::cpu
