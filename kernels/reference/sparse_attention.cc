#include "kernels/reference/sparse_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace swizzle::reference {
namespace {

double Dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{a[i]} * b[i];
  return sum;
}

void SoftmaxRow(std::span<double> row, double scale) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (const double score : row) largest = std::max(largest, score * scale);
  for (double& score : row) total += score = std::exp(score * scale - largest);
  for (double& score : row) score /= total;
}

}  // namespace

Result Sddmm(const AttentionPattern& pattern, int64_t head_dim, const Values& a, const Values& b) {
  Result result;
  result.reserve(pattern.nnz());
  for (int64_t row = 0; row < pattern.tokens; ++row) {
    for (const int64_t col : pattern.Keys(row)) {
      result.push_back(Dot(a.data() + row * head_dim, b.data() + col * head_dim, head_dim));
    }
  }
  return result;
}

Result SparseSoftmax(const AttentionPattern& pattern, double scale, const Result& scores) {
  Result result = scores;
  for (int64_t row = 0; row < pattern.tokens; ++row) {
    SoftmaxRow(std::span(result).subspan(pattern.row_offsets[row], pattern.Keys(row).size()), scale);
  }
  return result;
}

Result PatternSpmm(const AttentionPattern& pattern, int64_t head_dim, const Result& weights, const Values& values) {
  Result result(pattern.tokens * head_dim);
  for (int64_t row = 0; row < pattern.tokens; ++row) {
    for (uint32_t i = pattern.row_offsets[row]; i < pattern.row_offsets[row + 1]; ++i) {
      for (int64_t d = 0; d < head_dim; ++d) {
        result[row * head_dim + d] += weights[i] * values[pattern.col_indices[i] * head_dim + d];
      }
    }
  }
  return result;
}

Result SparseAttentionRow(const AttentionPattern& pattern, int64_t head_dim, double scale,
                          const AttentionInputs& inputs, int64_t query) {
  const auto keys = pattern.Keys(query);
  Result weights, result(head_dim);
  for (const int64_t key : keys) {
    weights.push_back(Dot(inputs.queries.data() + query * head_dim, inputs.keys.data() + key * head_dim, head_dim));
  }
  SoftmaxRow(weights, scale);
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int64_t d = 0; d < head_dim; ++d) result[d] += weights[i] * inputs.values[keys[i] * head_dim + d];
  }
  return result;
}

Result SparseAttention(const AttentionPattern& pattern, int64_t head_dim, double scale, const AttentionInputs& inputs) {
  Result result;
  result.reserve(pattern.tokens * head_dim);
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    const Result row = SparseAttentionRow(pattern, head_dim, scale, inputs, query);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

namespace {

// One head of the sequence that begins at `begin`: [tokens, size] of [tokens, channels].
Values HeadOf(const Values& matrix, int64_t channels, int64_t begin, int64_t tokens, int64_t head, int64_t size) {
  Values part;
  for (int64_t token = begin; token < begin + tokens; ++token) {
    const auto row = matrix.begin() + token * channels + head * size;
    part.insert(part.end(), row, row + size);
  }
  return part;
}

}  // namespace

Result SparseAttention(const Problem& problem, const AttentionPattern& pattern, const AttentionInputs& inputs) {
  const int64_t heads = problem.attention().heads, qk = problem.input.channels, vo = problem.output.channels;
  const int64_t qk_size = qk / heads, vo_size = vo / heads;
  Result result(problem.output.batch * vo);
  for (int64_t begin = 0; begin + pattern.tokens <= problem.output.batch; begin += pattern.tokens) {
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t shared = head / problem.attention().group_size;
      const auto of = [&](const Values& matrix, int64_t channels, int64_t at, int64_t size) {
        return HeadOf(matrix, channels, begin, pattern.tokens, at, size);
      };
      Result weights = Sddmm(pattern, qk_size, of(inputs.queries, qk, head, qk_size),
                             of(inputs.keys, KeyChannels(problem), shared, qk_size));
      weights = SparseSoftmax(pattern, problem.attention().scale, weights);
      const Result sums =
          PatternSpmm(pattern, vo_size, weights, of(inputs.values, ValueChannels(problem), shared, vo_size));
      for (int64_t i = 0; i < pattern.tokens * vo_size; ++i) {
        result[(begin + i / vo_size) * vo + head * vo_size + i % vo_size] = sums[i];
      }
    }
  }
  return result;
}

}  // namespace swizzle::reference
