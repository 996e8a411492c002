#include "kernels/format/attention_pattern.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/sparse_attention.h"

namespace swizzle::reference {

namespace {

const Values kNone;

}  // namespace

Result Solve(const Problem& problem, const Weight* weight, const std::vector<Values>& inputs,
             const Sequences* sequences) {
  const auto at = [&](size_t i) -> const Values& { return i < inputs.size() ? inputs[i] : kNone; };
  const Values &input = at(0), &second = at(1), &third = at(2);
  switch (problem.op) {
    case Op::kConv:
      return Conv(problem, *weight, input, second);
    case Op::kDepthwiseConv:
      return DepthwiseConv(problem, *weight, input, second);
    case Op::kAdd:
      return Add(problem, input, second);
    case Op::kActivation:
      return Activation(problem, input);
    case Op::kMaxPool:
      return MaxPool(problem, input);
    case Op::kAveragePool:
      return AveragePool(problem, input);
    case Op::kSoftmax:
      return Softmax(problem, input);
    case Op::kMultiply:
      return Multiply(problem, input, second);
    case Op::kScale:
      return Scale(problem, input, second);
    case Op::kFunction:
      return Function(problem, input);
    case Op::kTranspose:
      return Transpose(problem, input);
    case Op::kConcat:
      return Join(problem, inputs);
    case Op::kSlice:
      return Slice(problem, input);
    case Op::kResize:
      return Resize(problem, input);
    case Op::kDepthToSpace:
      return DepthToSpace(problem, input);
    case Op::kReshape:
    case Op::kConvertLayout:
      return Result(input.begin(), input.end());
    case Op::kEmbedding:
      return Embedding(problem, *weight, input, *sequences);
    case Op::kLayerNorm:
      return LayerNorm(problem, *weight, input, second);
    case Op::kSparseAttention:
      return SparseAttention(problem, *weight->matrix.As<AttentionPattern>(), {input, second, third});
    case Op::kAttention:
    case Op::kBiasedAttention:
    case Op::kDisentangledAttention:
      return Attention(problem, {input, second, third}, *sequences, weight);
    case Op::kRotary:
      return Rotary(problem, *weight, input, *sequences);
    case Op::kPermuteTokens:
      return PermuteTokens(problem, *weight, input, *sequences);
    case Op::kPlaneTokens:
      return PlaneTokens(problem, *weight, input);
    case Op::kSelectToken:
      return SelectToken(problem, input, *sequences);
    case Op::kMeanTokens:
      return MeanTokens(problem, input, *sequences);
  }
  return {};
}

}  // namespace swizzle::reference
