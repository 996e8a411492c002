#include "kernels/reference/reference.h"

namespace swizzle::reference {

Result Solve(const Problem& problem, const Weight* weight, const Values& input, const Values& second) {
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
    case Op::kConvertLayout:
      return Result(input.begin(), input.end());
    case Op::kEmbedding:
    case Op::kLayerNorm:
    case Op::kAttention:
    case Op::kSelectToken:
    case Op::kMeanTokens:
      break;
  }
  return {};
}

}  // namespace swizzle::reference
