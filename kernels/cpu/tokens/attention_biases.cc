#include "kernels/cpu/tokens/attention_biases.h"

#include <algorithm>
#include <utility>

namespace swizzle::cpu {

AttentionBiases::AttentionBiases(const DenseMatrix& biases, const Attention& attention)
    : key_stride_(attention.length > 0 ? attention.length : -1),
      offset_(attention.reach),
      columns_(PairPlacesOf(attention).count()),
      heads_(biases.rows),
      window_tokens_(std::max<int64_t>(attention.length, 1)),
      distances_(DistancesAttended(biases, attention)) {
  WindowBiases windows = WindowBiasesOf(biases, attention);
  of_window_ = std::move(windows.of_window);
  for (const int64_t first : windows.first_columns) {
    for (int64_t head = 0; head < heads_; ++head) {
      const float* const from = biases.values.data() + head * biases.cols + first;
      float* const to = &*biases_.insert(biases_.end(), static_cast<size_t>(columns_), 0.0f);
      for (int64_t column = 0; column < columns_; ++column) {
        // Distances are counted from the key on here; of pairs the queries become neighbours.
        const int64_t length = attention.length;
        const int64_t at = length == 0 ? columns_ - 1 - column : column % length * length + column / length;
        to[at] = BiasInLog2(from[column]);
      }
    }
  }
}

void AttentionBiases::Fill(int64_t begin, int64_t head, int64_t key, int64_t first_query, int64_t queries,
                           float* to) const {
  const auto windows = static_cast<int64_t>(of_window_.size());
  const int64_t kind = windows == 1 ? 0 : of_window_[static_cast<size_t>(begin / window_tokens_ % windows)];
  const float* const row = biases_.data() + (kind * heads_ + head) * columns_;
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
