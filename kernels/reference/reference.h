// The truth for kernel tests: every op of the kernel table, computed in double precision by the plainest loops.
//
// Activations are plain NCHW, [batch][channels][height][width], without padding; the problem gives the extents. Results
// include the problem's epilogue and are left in double precision. Pure functions, thread-safe.
// REQUIRES of all: the vectors have the sizes that the problem's extents say, the weight matches the problem.
#ifndef SWIZZLE_KERNELS_REFERENCE_REFERENCE_H_
#define SWIZZLE_KERNELS_REFERENCE_REFERENCE_H_

#include <vector>

#include "kernels/backend/kernel_table.h"

namespace swizzle::reference {

using Values = std::vector<float>;
using Result = std::vector<double>;

// A tensor inside the plane's borders, its padding outside. `residual` is empty unless the epilogue adds one.
Result Conv(const Problem& problem, const Weight& weight, const Values& input, const Values& residual);
Result DepthwiseConv(const Problem& problem, const Weight& weight, const Values& input, const Values& residual);

// The padding never wins a maximum; a window wholly in the padding gives -infinity before the clamp.
Result MaxPool(const Problem& problem, const Values& input);
// Divides by the window's part inside the plane, or by the whole window where count_include_pad is set.
Result AveragePool(const Problem& problem, const Values& input);

Result Add(const Problem& problem, const Values& a, const Values& b);
Result Multiply(const Problem& problem, const Values& a, const Values& b);
// `factors` is [batch, channels].
Result Scale(const Problem& problem, const Values& input, const Values& factors);
Result Activation(const Problem& problem, const Values& input);
Result Function(const Problem& problem, const Values& input);
Result Transpose(const Problem& problem, const Values& input);
Result Join(const Problem& problem, const std::vector<Values>& inputs);
Result Slice(const Problem& problem, const Values& input);
Result DepthToSpace(const Problem& problem, const Values& input);
// One axis after the other.
Result Resize(const Problem& problem, const Values& input);
// Over channels, for each position.
Result Softmax(const Problem& problem, const Values& input);

// Ops of token sequences; activations are [tokens, channels], or [sequences, channels]. Ids are INT32 in place of
// floats.
Result Embedding(const Problem& problem, const Weight& weight, const Values& ids, const Sequences& sequences);
// With a residual it normalises the sum of that and a linear layer's results; conv/shfl_bw/conv_shfl_bw_norm.h says
// what `weight` holds then.
Result LayerNorm(const Problem& problem, const Weight& weight, const Values& input, const Values& residual = {});
Result Rotary(const Problem& problem, const Weight& weight, const Values& input, const Sequences& sequences);
Result PermuteTokens(const Problem& problem, const Weight& weight, const Values& input, const Sequences& sequences);
Result PlaneTokens(const Problem& problem, const Weight& weight, const Values& input);
Result SelectToken(const Problem& problem, const Values& input, const Sequences& sequences);
Result MeanTokens(const Problem& problem, const Values& input, const Sequences& sequences);

struct AttentionInputs {
  const Values& queries;
  const Values& keys;
  const Values& values;
};
// A query whose keys all have the bias -infinity gets zeros. `weight`: of kBiasedAttention and kDisentangledAttention.
// What is packed has all side by side in `queries`.
Result Attention(const Problem& problem, const AttentionInputs& inputs, const Sequences& sequences,
                 const Weight* weight = nullptr);

// The problem's op on its operands, a residual behind the others, which may be left out or empty where there is none;
// `weight` and `sequences` may be null for ops without.
Result Solve(const Problem& problem, const Weight* weight, const std::vector<Values>& inputs,
             const Sequences* sequences = nullptr);

// y = function(clamp(sum + residual, low, high)), for one element; `residual` is 0 where there is none.
double ApplyEpilogue(const Epilogue& epilogue, double sum, double residual);

// f(x), for one element.
double ApplyFunction(const swizzle::Function& function, double x);

}  // namespace swizzle::reference

#endif  // SWIZZLE_KERNELS_REFERENCE_REFERENCE_H_
