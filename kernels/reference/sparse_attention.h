// The truth for sparse attention, in double precision by the plainest loops: one head, matrices row-major
// [tokens, head dim], values of a pattern in the order of its col_indices. Pure functions, thread-safe.
#ifndef SWIZZLE_KERNELS_REFERENCE_SPARSE_ATTENTION_H_
#define SWIZZLE_KERNELS_REFERENCE_SPARSE_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "kernels/format/attention_pattern.h"
#include "kernels/reference/reference.h"

namespace swizzle::reference {

// y[i] = a[row of i] . b[column of i]: a * b^T at the pattern.
Result Sddmm(const AttentionPattern& pattern, int64_t head_dim, const Values& a, const Values& b);
// Of `scores` * scale, within each row.
Result SparseSoftmax(const AttentionPattern& pattern, double scale, const Result& scores);
// y = weights * values, [tokens, head dim].
Result PatternSpmm(const AttentionPattern& pattern, int64_t head_dim, const Result& weights, const Values& values);
// softmax(q k^T * scale) v over each query's keys; zeros for a query that has none.
Result SparseAttention(const AttentionPattern& pattern, int64_t head_dim, double scale, const AttentionInputs& inputs);

// One row of SparseAttention, for patterns too large for all: [head dim].
Result SparseAttentionRow(const AttentionPattern& pattern, int64_t head_dim, double scale,
                          const AttentionInputs& inputs, int64_t query);

// The operator of the kernel table: all sequences and heads, activations [tokens, channels]. Spare tokens get zeros.
Result SparseAttention(const Problem& problem, const AttentionPattern& pattern, const AttentionInputs& inputs);

}  // namespace swizzle::reference

#endif  // SWIZZLE_KERNELS_REFERENCE_SPARSE_ATTENTION_H_
