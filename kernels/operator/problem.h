// What one layer computes: its operator, extents and attributes. Plain values.
#ifndef SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
#define SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/base/dtype.h"
#include "kernels/base/layout.h"
#include "kernels/operator/operator.h"

namespace swizzle {

// A sliding window over height and width; in elements.
struct Window {
  int32_t kernel_h = 1, kernel_w = 1;
  int32_t stride_h = 1, stride_w = 1;
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int32_t dilation_h = 1, dilation_w = 1;
  bool count_include_pad = false;  // kAveragePool: divide by the whole window, not by its part inside the plane

  bool IsPointwise() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 && pad_left == 0 &&
           pad_bottom == 0 && pad_right == 0;
  }
  bool operator==(const Window&) const = default;
};

// What kFunction computes of each element, or an epilogue.
enum class FunctionKind : uint8_t {
  kSigmoid,      // 1 / (1 + exp(-x))
  kSilu,         // x / (1 + exp(-x))
  kHardSigmoid,  // clamp(alpha * x + beta, 0, 1)
  kHardSwish,    // x * clamp(alpha * x + beta, 0, 1); alpha 1/6 and beta 1/2 are ONNX's HardSwish
  kLeakyRelu,    // x where x >= 0, else alpha * x
  kTanh,
  kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};
inline constexpr int kFunctionKindCount = 8;
std::string_view FunctionKindName(FunctionKind kind);

struct Function {
  FunctionKind kind = FunctionKind::kSigmoid;
  float alpha = 0.0f;  // finite; 0 where the kind has none
  float beta = 0.0f;
  bool operator==(const Function&) const = default;
};

// What is applied to a sum before it is stored: y = function(clamp(sum + bias + residual, low, high)). The bias is part
// of the weight. ReLU is {0, inf}, ReLU6 {0, 6}, none {-inf, inf}.
struct Epilogue {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool residual = false;                  // inputs[1] of the kernel, in the output's layout, is added
  std::optional<Function> function = {};  // of kConv on the CPU only (plan/fuse_layers.h)

  bool Clamps() const {
    return low > -std::numeric_limits<float>::infinity() || high < std::numeric_limits<float>::infinity();
  }
  bool operator==(const Epilogue&) const = default;
};

// Which row of an embedding table a token takes: the id that stands in inputs[0], INT32 in place of each float, or,
// without inputs, its position in its sequence plus `offset`. All are in range: whoever takes requests checked.
struct Lookup {
  bool by_position = false;
  int64_t offset = 0;
  bool operator==(const Lookup&) const = default;
};

// Heads are equal parts of the channels, in order: of q and k, and of v and the output. kSparseAttention: every
// sequence has as many tokens as the pattern, all in their places, and no key bias; the scale is positive. Spare tokens
// come last.
struct Attention {
  int32_t heads = 1;
  float scale = 1.0f;
  int64_t length = 0;    // kSparseAttention: the pattern's tokens
  int64_t nonzeros = 0;  // kSparseAttention: the pattern's
  bool packed = false;   // kAttention: one operand holds the channels of q, k and v, in this order (plan/fuse_layers.h)
  bool operator==(const Attention&) const = default;
};

// The type of elements in this layout: kNchw and kBlocked16 are always in FP32.
constexpr DType ElementType(Layout layout, DType precision) {
  return layout == Layout::kNchw || layout == Layout::kBlocked16 ? DType::kFloat32 : precision;
}

// One layer at one batch size.
struct Problem {
  Op op = Op::kConv;
  Extent input;
  Extent output;
  Window window;                  // kConv, kDepthwiseConv, pools
  Epilogue epilogue;              // all ops but kSoftmax, kConvertLayout, kTranspose and those of token sequences
  int threads = 1;                // of the stream it will run on
  int blocking = 0;               // of the weight, of Kernel::blockings
  Function function = {};         // kFunction
  Lookup lookup = {};             // kEmbedding
  Attention attention = {};       // kAttention, kSparseAttention
  float epsilon = 0.0f;           // kLayerNorm
  DType dtype = DType::kFloat32;  // of activations (ElementType), the plan's precision; sums are in FP32 always
  int64_t token = 0;  // kSelectToken: from 0, or from -1 backwards; sequences that are shorter give their last
};

// Operands, all read in key.input; without a residual.
constexpr int InputCount(const Problem& problem) {
  if (problem.op == Op::kEmbedding) return problem.lookup.by_position ? 0 : 1;
  if (IsAttention(problem.op)) return problem.attention.packed ? 1 : 3;
  return IsBinary(problem.op) ? 2 : 1;
}
inline constexpr int kMaxKernelInputs = 3;

// Channels of q, and of k, in an attention: those of v are the output's.
constexpr int64_t KeyChannels(const Problem& problem) {
  return problem.attention.packed ? (problem.input.channels - problem.output.channels) / 2 : problem.input.channels;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
