#include "kernels/cpu/kernel_table.h"

#include "kernels/cpu/conv/conv_csr.h"
#include "kernels/cpu/conv/conv_dense.h"
#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/conv/onednn_linear.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/elementwise/scale.h"
#include "kernels/cpu/elementwise/softmax.h"
#include "kernels/cpu/layout/convert.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/cpu/tokens/attention.h"
#include "kernels/cpu/tokens/attention_bits.h"
#include "kernels/cpu/tokens/embedding.h"
#include "kernels/cpu/tokens/layer_norm.h"
#include "kernels/cpu/tokens/sparse_attention.h"
#include "kernels/cpu/tokens/token_reduction.h"
#include "kernels/cpu/window/depthwise_dense.h"
#include "kernels/cpu/window/pool.h"

namespace swizzle::cpu {
namespace {

constexpr KernelKey Key(Op op, Format weights, Layout input, Layout output, DType precision = DType::kFloat32) {
  return {op, weights, DType::kFloat32, ElementType(input, precision), ElementType(output, precision), input, output};
}

constexpr KernelKey Key(Op op, Format weights, Layout layout) { return Key(op, weights, layout, layout); }

// Over kPanels in bfloat16.
constexpr KernelKey RoundedKey(Op op, Format weights, Layout input = Layout::kPanels, Layout output = Layout::kPanels) {
  return Key(op, weights, input, output, DType::kBFloat16);
}

bool AcceptsAll(const Problem&) { return true; }

// One row for each instruction set; `function` exists in each target's namespace. Blockings may follow.
#define SWIZZLE_ROWS_PER_TARGET(name, key, accepts, prepare, workspace, function, ...)                            \
  Kernel{name "_avx512", key, kAvx512, accepts, prepare, workspace, N_AVX3::function __VA_OPT__(, ) __VA_ARGS__}, \
      Kernel{name "_avx2", key, kAvx2, accepts, prepare, workspace, N_AVX2::function __VA_OPT__(, ) __VA_ARGS__}, \
      Kernel {                                                                                                    \
    name "_base", key, kAnyX86, accepts, prepare, workspace, N_EMU128::function __VA_OPT__(, ) __VA_ARGS__        \
  }

constexpr Kernel kRows[] = {
    // Convolution.
    SWIZZLE_ROWS_PER_TARGET("conv_csr_f32", Key(Op::kConv, Format::kCsr, Layout::kPanels), AcceptsAll, PrepareConvCsr,
                            ConvCsrWorkspaceBytes<Layout::kPanels>, ConvCsrPanels, kConvCsrBlockings),
    SWIZZLE_ROWS_PER_TARGET("conv_nchw_csr_f32", Key(Op::kConv, Format::kCsr, Layout::kNchw, Layout::kPanels),
                            AcceptsAll, PrepareConvCsr, ConvCsrWorkspaceBytes<Layout::kNchw>, ConvCsrNchw,
                            kConvCsrBlockings),
    SWIZZLE_ROWS_PER_TARGET("conv_blocked16_csr_f32", Key(Op::kConv, Format::kCsr, Layout::kBlocked16, Layout::kPanels),
                            AcceptsPointwise, PrepareConvCsr, ConvCsrWorkspaceBytes<Layout::kBlocked16>,
                            ConvCsrBlocked16, kConvCsrBlockings),
    SWIZZLE_ROWS_PER_TARGET("conv_dense_f32", Key(Op::kConv, Format::kDense, Layout::kPanels), AcceptsAll,
                            PrepareConvDense, ConvDenseWorkspaceBytes<Layout::kPanels>, ConvDensePanels),
    SWIZZLE_ROWS_PER_TARGET("conv_nchw_dense_f32", Key(Op::kConv, Format::kDense, Layout::kNchw, Layout::kPanels),
                            AcceptsAll, PrepareConvDense, ConvDenseWorkspaceBytes<Layout::kNchw>, ConvDenseNchw),

    // Dense layers through oneDNN.
    {"conv_dense_f32_onednn", Key(Op::kConv, Format::kDense, Layout::kBlocked16), kAvx512, AcceptsOnednnConv,
     PrepareOnednnConv, OnednnConvWorkspaceBytes, RunOnednnConv},
    {"conv_stem_dense_f32_onednn", Key(Op::kConv, Format::kDense, Layout::kNchw, Layout::kBlocked16), kAvx512,
     AcceptsOnednnStem, PrepareOnednnStem, OnednnStemWorkspaceBytes, RunOnednnConv},
    {"depthwise_dense_f32_onednn", Key(Op::kDepthwiseConv, Format::kDense, Layout::kBlocked16), kAvx512,
     AcceptsOnednnDepthwise, PrepareOnednnDepthwise, OnednnDepthwiseWorkspaceBytes, RunOnednnConv},
    {"linear_dense_f32_onednn", Key(Op::kConv, Format::kDense, Layout::kNchw), kAnyX86, AcceptsOnednnLinear,
     PrepareOnednnLinear, nullptr, RunOnednnLinear},

    // Depthwise convolution.
    SWIZZLE_ROWS_PER_TARGET("depthwise_dense_f32", Key(Op::kDepthwiseConv, Format::kDense, Layout::kPanels), AcceptsAll,
                            PrepareDepthwise, DepthwiseWorkspaceBytes, DepthwisePanels),
    SWIZZLE_ROWS_PER_TARGET("depthwise_nchw_dense_f32", Key(Op::kDepthwiseConv, Format::kDense, Layout::kNchw),
                            AcceptsAll, PrepareDepthwise, DepthwiseWorkspaceBytes, DepthwiseNchw),

    // Element-wise.
    SWIZZLE_ROWS_PER_TARGET("add_nchw_f32", Key(Op::kAdd, Format::kNone, Layout::kNchw), AcceptsAll, nullptr, nullptr,
                            AddNchw),
    SWIZZLE_ROWS_PER_TARGET("add_panels_f32", Key(Op::kAdd, Format::kNone, Layout::kPanels), AcceptsAll, nullptr,
                            nullptr, AddPanels),
    SWIZZLE_ROWS_PER_TARGET("add_blocked16_f32", Key(Op::kAdd, Format::kNone, Layout::kBlocked16), ClampKeepsZero,
                            nullptr, nullptr, AddBlocked16),
    SWIZZLE_ROWS_PER_TARGET("activation_nchw_f32", Key(Op::kActivation, Format::kNone, Layout::kNchw), AcceptsAll,
                            nullptr, nullptr, ActivationNchw),
    SWIZZLE_ROWS_PER_TARGET("activation_panels_f32", Key(Op::kActivation, Format::kNone, Layout::kPanels), AcceptsAll,
                            nullptr, nullptr, ActivationPanels),
    SWIZZLE_ROWS_PER_TARGET("activation_blocked16_f32", Key(Op::kActivation, Format::kNone, Layout::kBlocked16),
                            ClampKeepsZero, nullptr, nullptr, ActivationBlocked16),
    SWIZZLE_ROWS_PER_TARGET("multiply_nchw_f32", Key(Op::kMultiply, Format::kNone, Layout::kNchw), AcceptsAll, nullptr,
                            nullptr, MultiplyNchw),
    SWIZZLE_ROWS_PER_TARGET("multiply_panels_f32", Key(Op::kMultiply, Format::kNone, Layout::kPanels), AcceptsAll,
                            nullptr, nullptr, MultiplyPanels),
    SWIZZLE_ROWS_PER_TARGET("multiply_blocked16_f32", Key(Op::kMultiply, Format::kNone, Layout::kBlocked16),
                            ClampKeepsZero, nullptr, nullptr, MultiplyBlocked16),
    SWIZZLE_ROWS_PER_TARGET("scale_nchw_f32", Key(Op::kScale, Format::kNone, Layout::kNchw), AcceptsAll, nullptr,
                            nullptr, ScaleNchw),
    SWIZZLE_ROWS_PER_TARGET("scale_panels_f32", Key(Op::kScale, Format::kNone, Layout::kPanels), AcceptsAll, nullptr,
                            nullptr, ScalePanels),
    SWIZZLE_ROWS_PER_TARGET("scale_blocked16_f32", Key(Op::kScale, Format::kNone, Layout::kBlocked16), ClampKeepsZero,
                            nullptr, nullptr, ScaleBlocked16),
    SWIZZLE_ROWS_PER_TARGET("function_nchw_f32", Key(Op::kFunction, Format::kNone, Layout::kNchw), AcceptsAll, nullptr,
                            nullptr, FunctionNchw),
    SWIZZLE_ROWS_PER_TARGET("function_panels_f32", Key(Op::kFunction, Format::kNone, Layout::kPanels), AcceptsAll,
                            nullptr, nullptr, FunctionPanels),
    SWIZZLE_ROWS_PER_TARGET("function_blocked16_f32", Key(Op::kFunction, Format::kNone, Layout::kBlocked16),
                            FunctionKeepsZero, nullptr, nullptr, FunctionBlocked16),

    // Pooling and softmax.
    SWIZZLE_ROWS_PER_TARGET("max_pool_nchw_f32", Key(Op::kMaxPool, Format::kNone, Layout::kNchw), AcceptsPool, nullptr,
                            PoolWorkspaceBytes, MaxPoolNchw),
    SWIZZLE_ROWS_PER_TARGET("max_pool_panels_f32", Key(Op::kMaxPool, Format::kNone, Layout::kPanels), AcceptsPool,
                            nullptr, PoolWorkspaceBytes, MaxPoolPanels),
    SWIZZLE_ROWS_PER_TARGET("max_pool_blocked16_f32", Key(Op::kMaxPool, Format::kNone, Layout::kBlocked16),
                            AcceptsPoolBlocked16, nullptr, nullptr, MaxPoolBlocked16),
    SWIZZLE_ROWS_PER_TARGET("average_pool_nchw_f32", Key(Op::kAveragePool, Format::kNone, Layout::kNchw), AcceptsPool,
                            nullptr, PoolWorkspaceBytes, AveragePoolNchw),
    SWIZZLE_ROWS_PER_TARGET("average_pool_panels_f32", Key(Op::kAveragePool, Format::kNone, Layout::kPanels),
                            AcceptsPool, nullptr, PoolWorkspaceBytes, AveragePoolPanels),
    SWIZZLE_ROWS_PER_TARGET("average_pool_blocked16_f32", Key(Op::kAveragePool, Format::kNone, Layout::kBlocked16),
                            AcceptsPoolBlocked16, nullptr, nullptr, AveragePoolBlocked16),
    SWIZZLE_ROWS_PER_TARGET("softmax_nchw_f32", Key(Op::kSoftmax, Format::kNone, Layout::kNchw), AcceptsSoftmax,
                            nullptr, nullptr, SoftmaxNchw),
    SWIZZLE_ROWS_PER_TARGET("softmax_panels_f32", Key(Op::kSoftmax, Format::kNone, Layout::kPanels), AcceptsSoftmax,
                            nullptr, nullptr, SoftmaxPanels),

    // Token sequences.
    {"embedding_dense_f32_base", Key(Op::kEmbedding, Format::kDense, Layout::kNchw), kAnyX86, AcceptsAll,
     PrepareEmbedding, nullptr, RunEmbedding},
    SWIZZLE_ROWS_PER_TARGET("layer_norm_nchw_dense_f32", Key(Op::kLayerNorm, Format::kDense, Layout::kNchw), AcceptsAll,
                            PrepareLayerNorm, nullptr, LayerNormNchw),
    SWIZZLE_ROWS_PER_TARGET("layer_norm_panels_dense_f32", Key(Op::kLayerNorm, Format::kDense, Layout::kPanels),
                            AcceptsAll, PrepareLayerNorm, nullptr, LayerNormPanels),
    SWIZZLE_ROWS_PER_TARGET("attention_nchw_f32", Key(Op::kAttention, Format::kNone, Layout::kNchw), AcceptsAll,
                            nullptr, AttentionWorkspaceBytes, AttentionNchw),
    SWIZZLE_ROWS_PER_TARGET("attention_panels_f32", Key(Op::kAttention, Format::kNone, Layout::kPanels), AcceptsAll,
                            nullptr, AttentionWorkspaceBytes, AttentionPanels),
    SWIZZLE_ROWS_PER_TARGET("sparse_attention_nchw_pattern_f32",
                            Key(Op::kSparseAttention, Format::kPattern, Layout::kNchw), AcceptsAll,
                            PrepareSparseAttention, SparseAttentionWorkspaceBytes, SparseAttentionNchw),
    SWIZZLE_ROWS_PER_TARGET("sparse_attention_nchw_dense_f32", Key(Op::kSparseAttention, Format::kDense, Layout::kNchw),
                            AcceptsAttentionBits, PrepareAttentionBits, AttentionWorkspaceBytes, AttentionNchw),
    SWIZZLE_ROWS_PER_TARGET("sparse_attention_panels_dense_f32",
                            Key(Op::kSparseAttention, Format::kDense, Layout::kPanels), AcceptsAttentionBits,
                            PrepareAttentionBits, AttentionWorkspaceBytes, AttentionPanels),
    {"select_token_nchw_f32_base", Key(Op::kSelectToken, Format::kNone, Layout::kNchw), kAnyX86, AcceptsAll, nullptr,
     nullptr, SelectToken<Layout::kNchw>},
    {"select_token_panels_f32_base", Key(Op::kSelectToken, Format::kNone, Layout::kPanels), kAnyX86, AcceptsAll,
     nullptr, nullptr, SelectToken<Layout::kPanels>},
    SWIZZLE_ROWS_PER_TARGET("mean_tokens_nchw_f32", Key(Op::kMeanTokens, Format::kNone, Layout::kNchw), AcceptsAll,
                            nullptr, nullptr, MeanTokensNchw),
    SWIZZLE_ROWS_PER_TARGET("mean_tokens_panels_f32", Key(Op::kMeanTokens, Format::kNone, Layout::kPanels), AcceptsAll,
                            nullptr, nullptr, MeanTokensPanels),

    // Layout conversion.
    {"convert_nchw_panels_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kNchw, Layout::kPanels), kAnyX86,
     AcceptsConvert, nullptr, nullptr, Convert<Layout::kNchw, Layout::kPanels>},
    {"convert_nchw_blocked16_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kNchw, Layout::kBlocked16),
     kAnyX86, AcceptsConvert, nullptr, nullptr, Convert<Layout::kNchw, Layout::kBlocked16>},
    {"convert_panels_nchw_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kPanels, Layout::kNchw), kAnyX86,
     AcceptsConvert, nullptr, nullptr, Convert<Layout::kPanels, Layout::kNchw>},
    {"convert_panels_blocked16_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kPanels, Layout::kBlocked16),
     kAnyX86, AcceptsConvert, nullptr, nullptr, Convert<Layout::kPanels, Layout::kBlocked16>},
    {"convert_blocked16_nchw_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kBlocked16, Layout::kNchw),
     kAnyX86, AcceptsConvert, nullptr, nullptr, Convert<Layout::kBlocked16, Layout::kNchw>},
    {"convert_blocked16_panels_f32_base", Key(Op::kConvertLayout, Format::kNone, Layout::kBlocked16, Layout::kPanels),
     kAnyX86, AcceptsConvert, nullptr, nullptr, Convert<Layout::kBlocked16, Layout::kPanels>},
    {"transpose_nchw_f32_base", Key(Op::kTranspose, Format::kNone, Layout::kNchw), kAnyX86, AcceptsConvert, nullptr,
     nullptr, TransposeNchw},

    // The same over panels of bfloat16: the type is the problem's.
    SWIZZLE_ROWS_PER_TARGET("conv_csr_bf16", RoundedKey(Op::kConv, Format::kCsr), AcceptsAll, PrepareConvCsr,
                            ConvCsrWorkspaceBytes<Layout::kPanels>, ConvCsrPanels, kConvCsrBlockings),
    SWIZZLE_ROWS_PER_TARGET("conv_nchw_csr_bf16", RoundedKey(Op::kConv, Format::kCsr, Layout::kNchw), AcceptsAll,
                            PrepareConvCsr, ConvCsrWorkspaceBytes<Layout::kNchw>, ConvCsrNchw, kConvCsrBlockings),
    SWIZZLE_ROWS_PER_TARGET("conv_dense_bf16", RoundedKey(Op::kConv, Format::kDense), AcceptsAll, PrepareConvDense,
                            ConvDenseWorkspaceBytes<Layout::kPanels>, ConvDensePanels),
    SWIZZLE_ROWS_PER_TARGET("conv_nchw_dense_bf16", RoundedKey(Op::kConv, Format::kDense, Layout::kNchw), AcceptsAll,
                            PrepareConvDense, ConvDenseWorkspaceBytes<Layout::kNchw>, ConvDenseNchw),
    SWIZZLE_ROWS_PER_TARGET("depthwise_dense_bf16", RoundedKey(Op::kDepthwiseConv, Format::kDense), AcceptsAll,
                            PrepareDepthwise, DepthwiseWorkspaceBytes, DepthwisePanels),
    SWIZZLE_ROWS_PER_TARGET("add_panels_bf16", RoundedKey(Op::kAdd, Format::kNone), AcceptsAll, nullptr, nullptr,
                            AddPanels),
    SWIZZLE_ROWS_PER_TARGET("activation_panels_bf16", RoundedKey(Op::kActivation, Format::kNone), AcceptsAll, nullptr,
                            nullptr, ActivationPanels),
    SWIZZLE_ROWS_PER_TARGET("multiply_panels_bf16", RoundedKey(Op::kMultiply, Format::kNone), AcceptsAll, nullptr,
                            nullptr, MultiplyPanels),
    SWIZZLE_ROWS_PER_TARGET("scale_panels_bf16", RoundedKey(Op::kScale, Format::kNone), AcceptsAll, nullptr, nullptr,
                            ScalePanels),
    SWIZZLE_ROWS_PER_TARGET("function_panels_bf16", RoundedKey(Op::kFunction, Format::kNone), AcceptsAll, nullptr,
                            nullptr, FunctionPanels),
    SWIZZLE_ROWS_PER_TARGET("max_pool_panels_bf16", RoundedKey(Op::kMaxPool, Format::kNone), AcceptsPool, nullptr,
                            PoolWorkspaceBytes, MaxPoolPanels),
    SWIZZLE_ROWS_PER_TARGET("average_pool_panels_bf16", RoundedKey(Op::kAveragePool, Format::kNone), AcceptsPool,
                            nullptr, PoolWorkspaceBytes, AveragePoolPanels),
    SWIZZLE_ROWS_PER_TARGET("layer_norm_panels_dense_bf16", RoundedKey(Op::kLayerNorm, Format::kDense), AcceptsAll,
                            PrepareLayerNorm, nullptr, LayerNormPanels),
    SWIZZLE_ROWS_PER_TARGET("attention_panels_bf16", RoundedKey(Op::kAttention, Format::kNone), AcceptsAll, nullptr,
                            WidenedAttentionWorkspaceBytes, AttentionPanels),
    SWIZZLE_ROWS_PER_TARGET("sparse_attention_panels_dense_bf16", RoundedKey(Op::kSparseAttention, Format::kDense),
                            AcceptsAttentionBits, PrepareAttentionBits, WidenedAttentionWorkspaceBytes,
                            AttentionPanels),
    {"select_token_panels_bf16_base", RoundedKey(Op::kSelectToken, Format::kNone), kAnyX86, AcceptsAll, nullptr,
     nullptr, SelectToken<Layout::kPanels>},
    SWIZZLE_ROWS_PER_TARGET("mean_tokens_panels_bf16", RoundedKey(Op::kMeanTokens, Format::kNone), AcceptsAll, nullptr,
                            nullptr, MeanTokensPanels),
    {"convert_nchw_panels_bf16_base", RoundedKey(Op::kConvertLayout, Format::kNone, Layout::kNchw), kAnyX86,
     AcceptsConvert, nullptr, nullptr, Convert<Layout::kNchw, Layout::kPanels>},
    {"convert_panels_nchw_bf16_base", RoundedKey(Op::kConvertLayout, Format::kNone, Layout::kPanels, Layout::kNchw),
     kAnyX86, AcceptsConvert, nullptr, nullptr, Convert<Layout::kPanels, Layout::kNchw>},
    {"convert_panels_blocked16_bf16_base",
     RoundedKey(Op::kConvertLayout, Format::kNone, Layout::kPanels, Layout::kBlocked16), kAnyX86, AcceptsConvert,
     nullptr, nullptr, Convert<Layout::kPanels, Layout::kBlocked16>},
    {"convert_blocked16_panels_bf16_base", RoundedKey(Op::kConvertLayout, Format::kNone, Layout::kBlocked16), kAnyX86,
     AcceptsConvert, nullptr, nullptr, Convert<Layout::kBlocked16, Layout::kPanels>},
};

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cpu
